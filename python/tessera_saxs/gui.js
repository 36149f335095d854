// A page of gui.py. It shows the state of a project (Project.state), and sends
// what its reader does as the event "act": [name of the action, arguments].
// Without a project it lists all.
const colours = ["#3b6ea5", "#d98032", "#4f9d69", "#8a63a8", "#c2504e",
  "#7a6a55", "#c77fb0", "#5aa6b8"]; // of the pictures of tessera init

// ---- ranges of residues: {chain, first, last}, as text A:97-103 ----

function parse(text) { // undefined: no range
  const match = /^(\S*):(-?\d+)(?:-(-?\d+))?$/.exec(text.trim());
  const last = match && Number(match[3] === undefined ? match[2] : match[3]);
  return match && last >= Number(match[2])
    ? {chain: match[1], first: Number(match[2]), last} : undefined;
}

function format(range) {
  return range.chain + ":" + range.first +
    (range.last > range.first ? "-" + range.last : "");
}

function cut(ranges, hole) { // what lies outside of the hole
  return ranges.flatMap((range) => range.chain !== hole.chain ? [range] : [
    {...range, last: Math.min(range.last, hole.first - 1)},
    {...range, first: Math.max(range.first, hole.last + 1)}])
    .filter((range) => range.first <= range.last);
}

function join(ranges) { // as few as possible, in order
  const joined = [];
  for (const range of [...ranges].sort((a, b) => a.chain < b.chain ? -1 :
    a.chain > b.chain ? 1 : a.first - b.first)) {
    const before = joined[joined.length - 1];
    if (before && before.chain === range.chain &&
        range.first <= before.last + 1)
      before.last = Math.max(before.last, range.last);
    else joined.push({...range});
  }
  return joined;
}

// Lines in a square of 100: positive values over time on a logarithmic scale,
// and the value that is wanted.
function curves(points, wanted) {
  const known = points.filter((point) => point[1] > 0);
  const logs = [...known.map((point) => Math.log(point[1])), Math.log(wanted)];
  const low = Math.min(...logs) - 0.1, high = Math.max(...logs) + 0.1;
  const first = known.length ? known[0][0] : 0;
  const length = points[points.length - 1][0] - first || 1;
  const y = (value) => 100 * (high - Math.log(value)) / (high - low);
  return [
    {colour: "#90979f", d: `M0 ${y(wanted)}L100 ${y(wanted)}`},
    {colour: colours[0], d: known.map((point, k) => (k ? "L" : "M") +
      100 * (point[0] - first) / length + " " + y(point[1])).join("")},
  ];
}

export default {
  template: `
<div class="window">
  <h1><a href="/">tessera</a> {{ state.name }}</h1>
  <section v-if="!state.name">
    <slot></slot>
    <template v-if="state.projects.length">
      <h2>Projects</h2>
      <a v-for="name in state.projects" :href="'/project/' + name">{{
        name }}</a>
    </template>
  </section>
  <template v-else>
  <section>
    <h2>Files</h2>
    <div class="line" v-for="file in state.inputs" :key="file.path">
      <span class="role">{{ file.role }}</span>
      <a :href="'/files/' + file.path">{{ base(file.path) }}</a>
      <span class="grow"></span>
      <template v-if="file.role === 'curve'">
        <select :disabled="state.locked" :value="d2o(file) === null ? 'x' : 'n'"
          @change="setD2O(file, $event.target.value === 'x' ? null : 0)">
          <option value="x">X-rays</option><option value="n">neutrons</option>
        </select>
        <label v-if="d2o(file) !== null">D2O, %
          <input type="number" min="0" max="100" :value="100 * d2o(file)"
            :disabled="state.locked" @change="setD2O(file,
              $event.target.value / 100)"></label>
      </template>
      <label v-if="file.role === 'map'">resolution, &#8491;
        <input type="number" min="1" step="0.1" :disabled="state.locked"
          :value="state.settings.resolution" @change="act('resolution',
            Number($event.target.value) || null)"></label>
      <q-btn v-if="!state.locked" flat dense round icon="close"
        aria-label="remove" @click="act('remove', file.path)"></q-btn>
    </div>
    <p v-if="!hasModel">A model is missing.</p>
    <p v-if="state.busy">Fitting the model, finding its parts ...</p>
    <p v-if="state.locked">The runs below use these files. For others begin a
      <a href="/">new project</a>.</p>
    <div v-show="!state.locked"><slot></slot></div>
  </section>

  <section v-if="state.fits.length">
    <h2>The model as it is</h2>
    <template v-for="fit in state.fits">
      <p v-if="fit.reduced_chi2">{{ base(fit.curve) }}: reduced &chi;&sup2;
        {{ show(fit.reduced_chi2) }}, CorMap p {{ show(fit.cormap_p) }}; Rg
        (Guinier) {{ show(fit.rg_guinier) }} &#8491; of the model's curve,
        {{ fit.rg_data ? show(fit.rg_data) + ' \u212b' : 'unknown' }} of the
        data</p>
      <div class="wide" v-if="fit.reduced_chi2">
        <img :src="'/files/' + fit.picture + '?' + fit.chi2" alt="the fit">
      </div>
      <div class="messages" v-if="fit.said">{{ fit.said }}</div>
    </template>
  </section>

  <section v-if="state.found.stretches || state.remarks">
    <h2>What may move</h2>
    <div class="messages" v-if="state.remarks">{{ state.remarks }}</div>
    <div class="chains">
      <template v-for="row in rows">
        <b>{{ row.chain }}</b>
        <div class="chain" :style="{width: 100 * row.size / longest + '%'}">
          <div v-for="piece in row.pieces" :title="title(piece)"
            :class="{flexible: piece.soft}" @pointerdown="press($event, piece)"
            @pointerup="release($event, piece)" :style="{flex: (piece.last -
              piece.first + 1) + ' 0 0', backgroundColor: piece.colour}">
            {{ piece.soft ? '' : piece.part }}</div>
          <i v-if="chosen && chosen.chain === row.chain" :style="{
            left: 100 * (chosen.first - row.first) / row.size + '%',
            width: 100 * (chosen.last - chosen.first + 1) / row.size + '%'}">
            </i>
        </div>
      </template>
    </div>
    <p v-if="rows.length">Bars are rigid, lines are flexible{{ flexible }}.
      <span v-if="!state.locked">Tap a stretch, drag over residues, or type a
        range.</span>
    </p>
    <div class="line" v-if="!state.locked && rows.length">
      <label>residues <input v-model="text" size="12" placeholder="A:97-103">
        </label>
      <q-btn outline color="primary" label="flexible" :disable="!chosen"
        @click="make(true)"></q-btn>
      <q-btn outline color="primary" label="rigid" :disable="!chosen"
        @click="make(false)"></q-btn>
      <q-btn flat label="as found" @click="act('parts', null)"></q-btn>
    </div>
  </section>

  <section v-if="state.found.stretches">
    <h2>Solve</h2>
    <div class="line">
      <label>states, at most <input type="number" min="1" max="16"
        :disabled="state.running" v-model.number="states"></label>
      <label>minutes for each run <input type="number" min="0"
        :disabled="state.running" v-model.number="minutes"></label>
      <q-btn v-if="state.running" color="primary" icon="stop" :label="
        state.stop ? 'Stopping' : 'Stop'" :disable="state.stop"
        @click="act('stop')"></q-btn>
      <q-btn v-else color="primary" icon="play_arrow" :label="begin"
        :disable="!ready" @click="act('solve', states, minutes, false)"></q-btn>
      <q-btn v-if="!state.running && state.verdict.finished &&
        state.verdict.more" flat color="primary" :label="more"
        @click="act('solve', states, minutes, true)"></q-btn>
    </div>
    <p v-if="!hasData">A curve or a density map is missing.</p>
    <p v-if="state.end && !state.running">{{
      state.stop ? 'Stopped, to be resumed.' : state.end }}</p>
    <q-linear-progress v-if="state.running" :indeterminate="percent === null"
      :value="percent" size="8px"></q-linear-progress>
    <p v-if="state.line">{{ state.line }}</p>
    <div class="charts" v-if="state.running &&
      state.history.some((point) => point[1])">
      <div v-for="chart in charts">{{ chart.title }}
        <svg viewBox="0 0 100 100" preserveAspectRatio="none">
          <path v-for="line in chart.lines" :d="line.d" fill="none"
            :stroke="line.colour" stroke-width="2"
            vector-effect="non-scaling-stroke"></path></svg>
      </div>
    </div>
    <div class="messages newest" v-if="state.messages.length">{{
      state.messages.join('\\n') }}</div>
  </section>

  <section v-if="state.verdict.verdict">
    <h2>{{ state.verdict.finished ? 'Answer' : 'Answer so far' }}</h2>
    <p v-for="sentence in state.verdict.verdict">{{ sentence }}</p>
    <div class="wide" v-if="state.verdict.runs.length"><table>
      <tr><th>states</th><th>log evidence</th><th>P</th><th>&chi;&sup2;</th>
        <th>Rg, &#8491;</th><th>converged</th></tr>
      <tr v-for="run in state.verdict.runs"><td>{{ run.states }}</td>
        <td>{{ run.evidence && show(run.evidence.log, 5) }}</td>
        <td>{{ show(run.probability) }}</td><td>{{ interval(run.chi2) }}</td>
        <td>{{ interval(run.rg) }}</td>
        <td>{{ run.converged ? 'yes' : 'not yet' }}</td></tr>
    </table></div>
    <template v-if="state.verdict.answer">
      <h3>The run of {{ state.verdict.states }}
        {{ state.verdict.states === 1 ? 'state' : 'states' }}</h3>
      <p v-for="sentence in state.verdict.answer.sentences">{{ sentence }}</p>
    </template>
    <div class="line" v-if="state.verdict.report">
      <q-btn color="primary" type="a" target="_blank" label="Report"
        :href="'/files/' + state.verdict.report"></q-btn>
      <template v-if="state.verdict.answer">
        <q-btn outline color="primary" label="20 models"
          @click="act('export', 'even:20')"></q-btn>
        <q-btn outline color="primary" label="Best model"
          @click="act('export', 'best')"></q-btn>
      </template>
      <a :href="'/files/' + state.name + '/verdict.txt'">verdict.txt</a>
      <a :href="'/files/' + state.name + '/solve.yaml'">solve.yaml</a>
    </div>
    <iframe v-if="state.verdict.report && !state.running" title="report"
      :src="'/files/' + state.verdict.report"></iframe>
  </section>
  </template>
  <p>All files are in {{ state.folder }}</p>
</div>`,
  props: {json: String},
  data() {
    const {states, minutes} = JSON.parse(this.json).settings || {};
    return {text: "", pressed: null, states, minutes};
  },
  computed: {
    state() {
      return JSON.parse(this.json);
    },
    hasModel() {
      return this.state.inputs.some((file) => file.role === "model");
    },
    hasData() {
      return this.state.inputs.some((file) =>
        file.role === "curve" || file.role === "map");
    },
    ready() {
      return this.hasData && !this.state.busy && this.states >= 1 &&
        this.minutes !== "" && this.minutes >= 0;
    },
    begin() {
      return !this.state.locked ? "Solve" :
        this.state.verdict.finished ? "Solve again" : "Resume";
    },
    more() {
      const seconds = this.state.verdict.more_seconds;
      return seconds === undefined ? "Sample nevertheless" : "More draws, " +
        (seconds < 90 ? "about a minute" : Math.round(seconds / 60) +
        " minutes");
    },
    percent() { // of the part that is going on
      const found = / (\d+) %/.exec(this.state.line);
      return found && found[1] / 100;
    },
    charts() {
      const history = this.state.history;
      const [, chi2, rhat, ess] = history[history.length - 1];
      return [
        {title: "\u03c7\u00b2 " + this.show(chi2),
          lines: curves(history.map((point) => [point[0], point[1]]), 1)},
        {title: "R-hat " + this.show(rhat, 4) + " (to be below 1.01), " +
            this.show(ess) + " independent draws (above 400)",
          lines: curves(history.map((point) => [point[0], point[2] === null ?
            null : Math.max(point[2] - 1, 1e-3)]), 0.01)},
      ];
    },
    chosen() {
      return parse(this.text);
    },
    soft() { // flexible ranges
      const {flexible, stretches} = this.state.found;
      const [soft] = this.state.settings.parts || [flexible || []];
      return soft === "all" ? stretches : soft.map(parse);
    },
    flexible() {
      return this.soft.length ? ": " + this.soft.map(format).join(", ") : "";
    },
    rows() {
      const rows = new Map();
      for (const stretch of this.state.found.stretches || []) {
        const {chain, first, last, part} = stretch;
        if (!rows.has(chain)) rows.set(chain, {chain, first, pieces: []});
        const row = rows.get(chain), whole = [{chain, first, last}];
        const rigid = this.soft.reduce(cut, whole);
        row.pieces.push(...[
          ...rigid.map((range) => ({...range, part, soft: false,
            colour: part ? colours[(part - 1) % 8] : "#90979f"})),
          ...rigid.reduce(cut, whole).map((range) => ({...range, soft: true})),
        ].sort((a, b) => a.first - b.first));
        row.size = last - row.first + 1;
      }
      return [...rows.values()];
    },
    longest() {
      return Math.max(...this.rows.map((row) => row.size));
    },
  },
  methods: {
    d2o(file) { // null: X-rays
      return this.state.settings.d2o[file.path] ?? null;
    },
    setD2O(file, value) {
      this.act("d2o", {...this.state.settings.d2o, [file.path]: value});
    },
    act(...words) {
      this.$emit("act", words);
    },
    base(path) {
      return path.split("/").pop();
    },
    show(value, digits = 3) {
      return typeof value !== "number" ? "-" : value && Math.abs(value) < 1e-3 ?
        value.toExponential(1) : String(Number(value.toPrecision(digits)));
    },
    interval(value) { // mean and 90 % interval
      return value ? this.show(value.mean) + " [" + this.show(value.q5) + ", " +
        this.show(value.q95) + "]" : "-";
    },
    title(piece) {
      return format(piece) + (piece.soft ? " flexible" : " rigid");
    },
    residue(event, piece) {
      const box = event.target.getBoundingClientRect();
      const n = piece.last - piece.first + 1;
      return piece.first + Math.min(n - 1, Math.max(0, Math.floor(
        (event.clientX - box.left) / box.width * n)));
    },
    press(event, piece) {
      if (event.target.hasPointerCapture(event.pointerId)) // of a finger
        event.target.releasePointerCapture(event.pointerId);
      this.pressed = {...piece, x: event.clientX,
        at: this.residue(event, piece)};
    },
    // A tap chooses the stretch, a drag the residues from end to end.
    release(event, piece) {
      const from = this.pressed, chain = piece.chain;
      if (this.state.locked || !from || from.chain !== chain) return;
      const to = this.residue(event, piece);
      this.text = format(Math.abs(event.clientX - from.x) < 6 ? piece
        : {chain, first: Math.min(from.at, to), last: Math.max(from.at, to)});
    },
    // Residues that become flexible no longer keep their places.
    make(flexible) {
      const soft = cut(this.soft, this.chosen);
      if (flexible) soft.push(this.chosen);
      const [, before] = this.state.settings.parts || [[],
        this.state.found.fixed];
      const fixed = join(soft).reduce(cut, before.map(parse));
      this.act("parts", [join(soft).map(format), fixed.map(format)]);
    },
  },
};
