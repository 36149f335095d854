/* The 3D view: C-alpha traces on a canvas, without a library.
 *
 * tesseraMolecule (written by src/report/report_view.c) has the names of
 * residues, chains and domains, and draws with their conformations, one for
 * each state. Each conformation has the motions that superpose it on the
 * starting structure: first over all residues, then over each domain. The
 * selected draw is a tube with a halo that fades into the page with depth; the
 * other draws are thin lines behind it. */
'use strict';
var tesseraMolecule = null;

/* ---- geometry: matrices are nine numbers, row by row ---- */

function product(a, b) {
    return a.map(function (_, i) {
        var r = i - i % 3, c = i % 3;
        return a[r] * b[c] + a[r + 1] * b[c + 3] + a[r + 2] * b[c + 6];
    });
}

function rotation(axis, angle) { /* axis: 0 x, 1 y, 2 z */
    var m = [1, 0, 0, 0, 1, 0, 0, 0, 1];
    var a = (axis + 1) % 3, b = (axis + 2) % 3;
    m[4 * a] = m[4 * b] = Math.cos(angle);
    m[3 * b + a] = Math.sin(angle);
    m[3 * a + b] = -m[3 * b + a];
    return m;
}

function apply(m, v) {
    return [0, 3, 6].map(function (r) {
        return m[r] * v[0] + m[r + 1] * v[1] + m[r + 2] * v[2];
    });
}

/* The rotation that turns the longest principal axis of the points to the right
 * and the shortest towards the viewer. Eigenvectors come from power iteration.
 */
function principalView(points) {
    var c = [0, 0, 0, 0, 0, 0, 0, 0, 0], sum = 0;
    for (var i = 0; i < points.length; i += 3)
        for (var k = 0; k < 9; k++)
            c[k] += points[i + (k - k % 3) / 3] * points[i + k % 3];
    sum = c[0] + c[4] + c[8];
    function largest(m) {
        var v = [1, 0.7, 0.4];
        for (var turn = 0; turn < 100; turn++) {
            v = apply(m, v);
            var length = Math.hypot(v[0], v[1], v[2]) || 1;
            v = v.map(function (x) { return x / length; });
        }
        return v;
    }
    var x = largest(c), z = largest(c.map(function (value, k) {
        return (k % 4 ? 0 : sum) - value;
    }));
    return [x[0], x[1], x[2],
            z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2],
            z[0] * x[1] - z[1] * x[0], z[0], z[1], z[2]];
}

/* ---- colours ---- */

/* Okabe & Ito 2008 without black and yellow, which would not be visible on both
 * a dark and a light page. */
var moleculeColours = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9',
                       '#d55e00'];
var linkerColour = '#8a8a8a';

/* A mixture of two colours, with `share` of the first. */
function mixed(colour, other, share) {
    var b = channels(other);
    return colourOf(channels(colour).map(function (x, i) {
        return share * x + (1 - share) * b[i];
    }));
}

/* ---- the view ---- */

function showMolecule(figure, data) {
    var n = data.residues.length, nState = 1, domainOf = [], isCut = {};
    var chainOf = [], chains = data.chains, nDomain = data.domains.length;
    data.cuts.forEach(function (i) { isCut[i] = true; });
    data.domains.forEach(function (domain, d) {
        domain.residues.forEach(function (i) { domainOf[i] = d; });
    });
    chains.forEach(function (chain, k) {
        for (var i = chain.first; i <= chain.last; i++) chainOf[i] = k;
    });
    data.draws.forEach(function (draw) {
        draw.conformations.forEach(function (c) {
            nState = Math.max(nState, c.state);
        });
    });
    var view = {draw: Math.min(1, data.draws.length - 1), over: 0, state: 0,
                colour: nState > 1 ? 'state' : nDomain ? 'domain'
                    : chains.length > 1 ? 'chain' : 'sequence', others: true,
                turning: false, zoom: 1, turn: null};
    var canvas = document.createElement('canvas');
    var context = canvas.getContext('2d'), frame = null, selected = [];

    /* Coordinates of a conformation superposed on the starting structure, over
     * all residues (`over` 0) or over domain `over`: [3 n] Angstrom. */
    function superposed(c, over) {
        c.superposed = c.superposed || [];
        if (!c.superposed[over]) {
            var m = c.motions[over], at = new Float32Array(3 * n);
            for (var i = 0; i < n; i++)
                for (var k = 0; k < 3; k++)
                    at[3 * i + k] = 0.1 * (m[3 * k] * c.xyz[3 * i] +
                        m[3 * k + 1] * c.xyz[3 * i + 1] +
                        m[3 * k + 2] * c.xyz[3 * i + 2]) + m[9 + k];
            c.superposed[over] = at;
        }
        return c.superposed[over];
    }

    /* The conformations of a draw that are visible with the selected state. */
    function visible(draw) {
        return draw.conformations.filter(function (c) {
            return !view.state || !c.state || c.state === view.state;
        });
    }

    /* The centre of all visible conformations, and the largest distance of a
     * residue from it. */
    function extent() {
        var centre = [0, 0, 0], count = 0, radius = 1, all = [];
        data.draws.forEach(function (draw) {
            visible(draw).forEach(function (c) {
                all.push(superposed(c, view.over));
            });
        });
        all.forEach(function (at) {
            for (var i = 0; i < 3 * n; i++) centre[i % 3] += at[i];
            count += n;
        });
        centre = centre.map(function (x) { return x / (count || 1); });
        all.forEach(function (at) {
            for (var i = 0; i < 3 * n; i += 3)
                radius = Math.max(radius, Math.hypot(at[i] - centre[0],
                    at[i + 1] - centre[1], at[i + 2] - centre[2]));
        });
        return {centre: centre, radius: radius};
    }

    function colourAt(c, i) {
        if (view.colour === 'state')
            return c.state ? colourNo(c.state - 1) : linkerColour;
        if (view.colour === 'sequence') {
            var part = n > 1 ? i / (n - 1) : 0;
            return part < 0.5 ? mixed('#56b4e9', '#0072b2', 2 * part)
                : mixed('#d55e00', '#56b4e9', 2 * part - 1);
        }
        if (view.colour === 'chain') return colourNo(chainOf[i]);
        if (domainOf[i] !== undefined) return colourNo(domainOf[i]);
        return chains[chainOf[i]].kind === 'protein'
            ? linkerColour : colourNo(nDomain + chainOf[i]);
    }

    function colourNo(k) { return moleculeColours[k % 6]; }

    /* Pixels per Angstrom with which the molecule fills the box at the first
     * view. */
    function baseScale(box) {
        return 0.93 * Math.min((box.width / 2 - 18) / view.wide,
                               (box.height / 2 - 14) / view.high);
    }

    /* Projects a conformation: x, y in pixels, z towards the viewer in units of
     * the radius; [3 n]. */
    function project(c, e, box) {
        var at = superposed(c, view.over), out = new Float32Array(3 * n);
        var m = view.turn, scale = view.zoom * baseScale(box);
        for (var i = 0; i < n; i++) {
            var x = at[3 * i] - e.centre[0], y = at[3 * i + 1] - e.centre[1];
            var z = at[3 * i + 2] - e.centre[2];
            var depth = (m[6] * x + m[7] * y + m[8] * z) / e.radius;
            var size = scale * 4 / (4 - depth);
            out[3 * i] = box.width / 2 +
                size * (m[0] * x + m[1] * y + m[2] * z);
            out[3 * i + 1] = box.height / 2 -
                size * (m[3] * x + m[4] * y + m[5] * z);
            out[3 * i + 2] = depth;
        }
        return out;
    }

    function thinLines(c, at) {
        var path = {};
        for (var i = 1; i < n; i++) {
            if (isCut[i]) continue;
            var colour = colourAt(c, i);
            path[colour] = path[colour] || new Path2D();
            path[colour].moveTo(at[3 * i - 3], at[3 * i - 2]);
            path[colour].lineTo(at[3 * i], at[3 * i + 1]);
        }
        Object.keys(path).forEach(function (colour) {
            context.strokeStyle = colour;
            context.stroke(path[colour]);
        });
    }

    /* Appends to `list` the segments of a smooth curve through the residues
     * (Catmull & Rom 1974). */
    function addSegments(c, at, list) {
        var steps = n > 1500 ? 1 : 3;
        function point(i, t) {
            var a = Math.max(i - 1, 0), d = Math.min(i + 2, n - 1);
            if (isCut[i]) a = i;
            if (isCut[i + 2]) d = i + 1;
            return [0, 1, 2].map(function (k) {
                var p = at[3 * a + k], q = at[3 * i + k];
                var r = at[3 * i + 3 + k], s = at[3 * d + k];
                return q + 0.5 * t * (r - p + t * (2 * p - 5 * q + 4 * r - s +
                    t * (3 * (q - r) + s - p)));
            });
        }
        for (var i = 0; i + 1 < n; i++) {
            if (isCut[i + 1]) continue;
            var from = point(i, 0);
            for (var k = 1; k <= steps; k++) {
                var to = point(i, k / steps);
                list.push({from: from, to: to, z: 0.5 * (from[2] + to[2]),
                           colour: colourAt(c, k > steps / 2 ? i + 1 : i)});
                from = to;
            }
        }
    }

    function stroke(p, width, colour, cap, dx) {
        context.lineCap = cap;
        context.lineWidth = width;
        context.strokeStyle = colour;
        context.beginPath();
        context.moveTo(p.from[0] + dx, p.from[1] + dx);
        context.lineTo(p.to[0] + dx, p.to[1] + dx);
        context.stroke();
    }

    function tube(list, width, page) {
        list.sort(function (a, b) { return a.z - b.z; });
        var far = list.length ? list[0].z : 0;
        var depth = list.length ? list[list.length - 1].z - far || 1 : 1;
        list.forEach(function (p) {
            var near = (p.z - far) / depth;
            var wide = width * 4 / (4 - p.z);
            stroke(p, wide + 3, page, 'butt', 0);
            stroke(p, wide, mixed(p.colour, page, 0.5 + 0.5 * near), 'round',
                   0);
            stroke(p, 0.3 * wide, 'rgba(255,255,255,' + 0.35 * near + ')',
                   'round', -0.17 * wide);
        });
    }

    function paint() {
        frame = null;
        var scale = window.devicePixelRatio || 1;
        var box = {width: figure.clientWidth || 300};
        box.height = Math.round(Math.min(0.9 * box.width, 440));
        canvas.style.height = box.height + 'px';
        canvas.width = Math.round(scale * box.width);
        canvas.height = Math.round(scale * box.height);
        context.setTransform(scale, 0, 0, scale, 0, 0);
        var page = pageColour('--page', '#ffffff');
        var ink = pageColour('--ink', '#222222');
        var e = extent(), list = [];
        context.lineWidth = 1;
        context.globalAlpha = 0.28;
        context.lineCap = 'butt';
        data.draws.forEach(function (draw, d) {
            if (view.others && d !== view.draw)
                visible(draw).forEach(function (c) {
                    thinLines(c, project(c, e, box));
                });
        });
        context.globalAlpha = 1;
        selected = visible(data.draws[view.draw]).map(function (c) {
            return {conformation: c, at: project(c, e, box)};
        });
        selected.forEach(function (s) {
            addSegments(s.conformation, s.at, list);
        });
        tube(list, Math.min(Math.max(1.8 * view.zoom * baseScale(box), 2.2),
                            11), page);
        context.fillStyle = ink;
        context.font = '600 13px Helvetica, Arial, sans-serif';
        selected.forEach(function (s) { chains.forEach(function (chain) {
            if (chain.kind === 'ligand') return;
            var ends = chain.kind === 'strand' ? ["5'", "3'"] : ['N', 'C'];
            [chain.first, chain.last].forEach(function (i, k) {
                var text = (k || chains.length < 2 ? '' : chain.name + ' ') +
                    ends[k];
                context.fillText(text, Math.min(s.at[3 * i] + 7, box.width -
                    context.measureText(text).width), s.at[3 * i + 1] - 7);
            });
        }); });
    }

    function pageColour(name, otherwise) {
        var text = getComputedStyle(document.documentElement)
            .getPropertyValue(name).trim();
        return /^#[0-9a-f]{6}$/i.test(text) ? text : otherwise;
    }

    function requestPaint() {
        if (frame === null) frame = requestAnimationFrame(paint);
    }

    function turnBy(axis, angle) {
        view.turn = product(rotation(axis, angle), view.turn);
        requestPaint();
    }

    function zoomBy(factor) {
        view.zoom = Math.min(Math.max(view.zoom * factor, 0.4), 12);
        requestPaint();
    }

    function reset() {
        var first = visible(data.draws[view.draw])[0] ||
            data.draws[view.draw].conformations[0];
        var e = extent(), at = superposed(first, view.over);
        view.turn = principalView(at.map(function (x, i) {
            return x - e.centre[i % 3];
        }));
        view.zoom = view.wide = view.high = 1;
        data.draws.forEach(function (draw) {
            visible(draw).forEach(function (c) {
                var at = superposed(c, view.over);
                for (var i = 0; i < 3 * n; i += 3) {
                    var p = apply(view.turn, [0, 1, 2].map(function (k) {
                        return at[i + k] - e.centre[k];
                    }));
                    view.wide = Math.max(view.wide, Math.abs(p[0]));
                    view.high = Math.max(view.high, Math.abs(p[1]));
                }
            });
        });
        requestPaint();
    }

    function animate() {
        if (!view.turning) return;
        turnBy(1, 0.01);
        requestAnimationFrame(animate);
    }

    /* ---- controls ---- */

    function domainName(d) {
        return 'domain ' + (d + 1) + ' (' + data.domains[d].name + ')';
    }

    function updateLegend() {
        var entries = [];
        if (view.colour === 'state') {
            for (var s = 1; s <= nState; s++)
                entries.push([colourNo(s - 1), 'state ' + s]);
            entries.push([linkerColour, 'start']);
        } else if (view.colour === 'sequence') {
            entries = [['#0072b2', 'N terminus'], ['#56b4e9', 'centre'],
                       ['#d55e00', 'C terminus']];
        } else {
            if (view.colour === 'domain') {
                data.domains.forEach(function (_, d) {
                    entries.push([colourNo(d), domainName(d)]);
                });
                entries.push([linkerColour, nDomain ? 'linkers and tails'
                                                    : 'all residues']);
            }
            chains.forEach(function (chain, k) {
                if (view.colour === 'chain' || chain.kind !== 'protein')
                    entries.push([colourAt(null, chain.first), chain.name]);
            });
        }
        legend.textContent = '';
        entries.forEach(function (entry) {
            var item = document.createElement('span');
            var patch = document.createElement('i');
            patch.style.background = entry[0];
            item.append(patch, entry[1]);
            legend.append(item);
        });
    }

    function select(words, options, key, after) {
        var label = document.createElement('label');
        var list = document.createElement('select');
        options.forEach(function (o) { list.add(new Option(o[1], o[0])); });
        list.value = view[key];
        list.name = key;
        list.addEventListener('change', function () {
            view[key] = typeof view[key] === 'number' ? +list.value
                                                      : list.value;
            updateLegend();
            if (after) after();
            requestPaint();
        });
        label.append(words + ' ', list);
        return label;
    }

    function button(words, act) {
        var b = document.createElement('button');
        b.type = 'button';
        b.textContent = words;
        b.addEventListener('click', function () { act(b); });
        return b;
    }

    var controls = document.createElement('div');
    var legend = document.createElement('div');
    controls.className = 'controls';
    legend.className = 'legend';
    if (nDomain)
        controls.append(select('superposed on', [[0, 'all residues']].concat(
            data.domains.map(function (_, d) {
                return [d + 1, domainName(d)];
            })), 'over', reset));
    if (data.draws.length > 1)
        controls.append(select('draw', data.draws.map(function (draw, d) {
            return [d, draw.name];
        }), 'draw'));
    if (nState > 1) {
        var states = [[0, 'all']];
        for (var s = 1; s <= nState; s++) states.push([s, 'state ' + s]);
        controls.append(select('states', states, 'state'));
    }
    controls.append(select('colour by', [['domain', 'domain'],
        ['sequence', 'position'], ['chain', 'chain']].concat(
        nState > 1 ? [['state', 'state']] : []),
        'colour'));
    var box = document.createElement('label');
    var tick = document.createElement('input');
    tick.type = 'checkbox';
    tick.checked = true;
    tick.addEventListener('change', function () {
        view.others = tick.checked;
        requestPaint();
    });
    box.append(tick, ' other draws');
    if (data.draws.length > 1) controls.append(box);
    controls.append(button('rotate', function (b) {
        view.turning = !view.turning;
        b.textContent = view.turning ? 'stop' : 'rotate';
        animate();
    }), button('reset', reset));

    /* ---- mouse, fingers, keys ---- */

    var down = {}, fingers = 0;
    canvas.addEventListener('pointerdown', function (event) {
        canvas.setPointerCapture(event.pointerId);
        down[event.pointerId] = [event.offsetX, event.offsetY];
        fingers = Object.keys(down).length;
        canvas.focus({preventScroll: true});
    });
    function spread() {
        var ids = Object.keys(down);
        return Math.hypot(down[ids[0]][0] - down[ids[1]][0],
                          down[ids[0]][1] - down[ids[1]][1]);
    }
    canvas.addEventListener('pointermove', function (event) {
        var was = down[event.pointerId];
        if (!was) {
            showResidueAt(event);
            return;
        }
        var now = [event.offsetX, event.offsetY];
        if (fingers === 2) {
            var before = spread();
            down[event.pointerId] = now;
            zoomBy(spread() / (before || 1));
            return;
        }
        down[event.pointerId] = now;
        turnBy(1, 0.01 * (now[0] - was[0]));
        turnBy(0, 0.01 * (now[1] - was[1]));
        tesseraTip(null);
    });
    ['pointerup', 'pointercancel'].forEach(function (type) {
        canvas.addEventListener(type, function (event) {
            delete down[event.pointerId];
            fingers = Object.keys(down).length;
        });
    });
    canvas.addEventListener('pointerleave', function () { tesseraTip(null); });
    canvas.addEventListener('wheel', function (event) {
        if (document.activeElement !== canvas) return;
        event.preventDefault();
        zoomBy(Math.exp(-0.0015 * event.deltaY));
    }, {passive: false});
    canvas.addEventListener('keydown', function (event) {
        var acts = {
            ArrowLeft: function () { turnBy(1, -0.15); },
            ArrowRight: function () { turnBy(1, 0.15); },
            ArrowUp: function () { turnBy(0, -0.15); },
            ArrowDown: function () { turnBy(0, 0.15); },
            '+': function () { zoomBy(1.2); },
            '-': function () { zoomBy(1 / 1.2); }, '0': reset};
        acts['='] = acts['+'];
        if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        acts[event.key]();
    });

    /* Shows the residue under the mouse, and its displacement from the starting
     * structure. */
    function showResidueAt(event) {
        var best = 12 * 12, hit = null;
        selected.forEach(function (s) {
            for (var i = 0; i < n; i++) {
                var dx = s.at[3 * i] - event.offsetX;
                var dy = s.at[3 * i + 1] - event.offsetY;
                var d = dx * dx + dy * dy - 20 * s.at[3 * i + 2];
                if (dx * dx + dy * dy < 144 && d < best) {
                    best = d;
                    hit = {i: i, c: s.conformation};
                }
            }
        });
        if (!hit) {
            tesseraTip(null);
            return;
        }
        var at = superposed(hit.c, view.over);
        var start = superposed(data.draws[0].conformations[0], view.over);
        var moved = Math.hypot.apply(null, [0, 1, 2].map(function (k) {
            return at[3 * hit.i + k] - start[3 * hit.i + k];
        }));
        var rows = {residue: data.residues[hit.i],
                    displacement: moved.toFixed(1) + ' \u00c5'};
        if (domainOf[hit.i] !== undefined)
            rows.domain = '' + (domainOf[hit.i] + 1);
        if (hit.c.state) rows.state = '' + hit.c.state;
        tesseraTip(rows, event);
    }

    canvas.tabIndex = 0;
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', 'Traces of ' + (data.draws.length - 1) +
        ' draws of ' + n + ' residues. Arrow keys rotate, plus and minus ' +
        'zoom, 0 resets the view.');
    figure.append(controls, canvas, legend);
    updateLegend();
    reset();
    paint();
    new ResizeObserver(function () {
        if (Math.round(figure.clientWidth) !== Math.round(
            canvas.width / (window.devicePixelRatio || 1))) requestPaint();
    }).observe(figure);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change',
                                                                requestPaint);
    data.view = view;
    data.superposed = superposed;
    data.canvas = canvas;
}
