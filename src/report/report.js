/* What the page of a report does in a browser: it joins the modules of Vega,
 * turns each figure (as src/report/figure.c writes it) into a Vega
 * specification, and shows it, as wide as the window lets it and in the colours
 * of the page, dark or light. Drag along x to zoom, double click to go back,
 * point at a mark for its numbers; with keys, + and - zoom, arrows move, 0 goes
 * back. Nothing is fetched. */
'use strict';
var tesseraFigures = {}, tesseraViews = {};

/* ---- the modules of Vega, as CommonJS has them ---- */

var vegaModules = {};

function vegaModule(name, make) {
    var module = {exports: {}};
    make.call({}, module, module.exports, function (other) {
        if (other === 'vega-selections') other = 'vega-selection';
        if (!vegaModules[other]) throw new Error('no module ' + other);
        return vegaModules[other];
    });
    vegaModules[name] = module.exports;
}

function vegaJoin() {
    ['transforms', 'view-transforms', 'encode'].forEach(function (name) {
        Object.assign(vegaModules['vega-dataflow'].transforms,
                      vegaModules['vega-' + name]);
    });
    return {parse: vegaModules['vega-parser'].parse,
            View: vegaModules['vega-view'].View};
}

/* ---- what the window is like ---- */

function readLook() {
    var style = getComputedStyle(document.documentElement);
    ['page', 'ink', 'grid', 'frame'].forEach(function (name) {
        look[name] = style.getPropertyValue('--' + name).trim();
    });
    look.isDark = matchMedia('(prefers-color-scheme: dark)').matches;
}

/* On a dark page dark lines of a figure are light, and what is pale on white is
 * as pale on black. */
function colourOnPage(colour) {
    var rgb = [1, 3, 5].map(function (i) {
        return parseInt(colour.slice(i, i + 2), 16);
    });
    var light = (2 * rgb[0] + 5 * rgb[1] + rgb[2]) / 8;
    if (!look.isDark || (light > 125 && light < 185)) return colour;
    return '#' + rgb.map(function (x) {
        var add = light < 80 ? 0.55 : 0.35;
        var to = light < 185 ? x + add * (255 - x) : 0.45 * x;
        return (256 + Math.round(to)).toString(16).slice(1);
    }).join('');
}

/* The figure as it fits: no wider than what holds it, or, folded, what holds
 * that. */
function fitted(f, place) {
    var box = place.parentNode;
    do box = box.parentNode; while (!box.clientWidth);
    var room = box.clientWidth;
    var copy = Object.assign({}, f, {titleAt: room < 480 ? -58 : -72});
    var beside = 30 - copy.titleAt + (f.panels.some(function (p) {
        return p.zTitle;
    }) ? 84 : 0);
    copy.width = Math.max(150, Math.min(f.width, room - beside));
    copy.panels = f.panels.map(function (panel) {
        return Object.assign({}, panel, {
            layers: panel.layers.map(function (layer) {
                return Object.assign({}, layer,
                                     {colour: colourOnPage(layer.colour)});
            })});
    });
    return copy;
}

/* ---- what is pointed at: variable and value, beside the mouse ---- */

function tesseraTip(rows, event) {
    var tip = document.getElementById('tip');
    if (!tip) {
        tip = document.createElement('div');
        tip.id = 'tip';
        document.body.append(tip);
    }
    tip.hidden = !rows;
    if (!rows) return;
    tip.textContent = '';
    Object.keys(rows).forEach(function (key) {
        var row = document.createElement('div');
        var name = document.createElement('span');
        name.textContent = key;
        row.append(name, (key ? ' ' : '') + rows[key]);
        tip.append(row);
    });
    var x = event.clientX + 14, y = event.clientY + 14;
    if (x + tip.offsetWidth > window.innerWidth - 8)
        x = Math.max(4, event.clientX - tip.offsetWidth - 10);
    if (y + tip.offsetHeight > window.innerHeight - 8)
        y = event.clientY - tip.offsetHeight - 10;
    tip.style.left = x + 'px';
    tip.style.top = y + 'px';
}

/* ---- a figure as a Vega 5 specification ---- */

var dash = [5, 4], gap = 16, legendRow = 20; /* pixels */
var look = {}; /* colours of the page, see readLook */
var mostPointed = 1500;       /* points of a line that can be pointed at */

/* {x: 3} as Vega wants it, {x: {value: 3}}. */
function constants(object) {
    var out = {};
    for (var key in object) out[key] = {value: object[key]};
    return out;
}

/* Every layer is a table of x, y, z (z: the second y, or the colour). */
function tables(f) {
    var all = [];
    f.panels.forEach(function (panel, p) {
        panel.layers.forEach(function (layer, l) {
            all.push({name: 'p' + p + 'l' + l, values: layer.x.map(
                function (x, i) {
                    return {x: x, y: layer.y[i],
                            z: layer.z ? layer.z[i] : undefined};
                })});
        });
    });
    return all;
}

/* What the mouse does. */
function signals(f) {
    var all = [f.x0, f.x1], at = "invert('x',clamp(x(),0,width))";
    return [{name: 'brush', value: [0, 0], on: [
        {events: 'mousedown', update: '[' + at + ',' + at + ']'},
        {events: '[mousedown, window:mouseup] > window:mousemove!',
         update: '[brush[0],' + at + ']'},
        {events: 'dblclick', update: '[0,0]'}]},
    {name: 'dragging', value: false, on: [
        {events: 'mousedown', update: 'true'},
        {events: 'window:mouseup', update: 'false'}]},
    {name: 'xdom', value: all, on: [
        {events: 'window:mouseup',
         update: 'abs(brush[1]-brush[0])>0.01*abs(xdom[1]-xdom[0])?' +
             '[min(brush[0],brush[1]),max(brush[0],brush[1])]:xdom'},
        {events: 'dblclick', update: JSON.stringify(all)}]}
    ];
}

function tooltip(f, panel, layer) {
    var text = JSON.stringify; /* also how an expression quotes */
    /* a key that comes twice is refused: maps have one title twice */
    var up = panel.title + (panel.title === f.xTitle ? ' (up)' : '');
    return {signal: '{' + (layer.label ? "'':" + text(layer.label) + ',' : '') +
        text(f.xTitle) + ":format(datum.x,'.5~g')," +
        text(up) + ":format(datum.y,'.5~g')" +
        (layer.kind === 'cells' ? ",value:format(datum.z,'.4~g')" : '') + '}'};
}

/* y, held above the foot of a logarithmic panel */
function height(panel, field) {
    return panel.log
        ? {scale: 'y', signal: 'max(datum.' + field + ',' +
            panel.y0 * 1e-3 + ')'}
        : {scale: 'y', field: field};
}

/* The marks of a layer; the last are not seen but can be pointed at. */
function layerMarks(f, panel, layer, table) {
    var kind = layer.kind, isLine = kind === 'line' || kind === 'dashes';
    /* a line through one point would not be seen */
    var isDot = kind === 'line' && layer.x.length === 1;
    var types = {band: 'area', errors: 'rule', points: 'symbol', cells: 'rect'};
    var tip = tooltip(f, panel, layer);
    var x = {scale: 'x', field: 'x'}, y = height(panel, 'y');
    function mark(type, update) {
        return {type: type, from: {data: table}, encode: {update: update}};
    }
    if (kind === 'cells')
        return [mark('rect', {
            x: x, x2: {scale: 'x', signal: 'datum.x+' + layer.dx},
            y: y, y2: {scale: 'y', signal: 'datum.y+' + layer.dy},
            fill: {scale: 'z', field: 'z'}, stroke: {scale: 'z', field: 'z'},
            strokeWidth: {value: 0.6}, tooltip: tip})];
    var look = kind === 'band' || kind === 'points' || isDot
        ? constants({fill: layer.colour, fillOpacity: layer.opacity})
        : constants({stroke: layer.colour, strokeOpacity: layer.opacity,
                     strokeWidth: kind === 'errors' ? 1.1 : 1.6});
    look.x = x;
    look.y = y;
    if (layer.z) look.y2 = height(panel, 'z');
    if (kind === 'band')
        look.defined = {signal: 'isValid(datum.y)&&isValid(datum.z)'};
    if (isLine)
        look.defined = {signal: 'isValid(datum.y)' +
            (panel.log ? '&&datum.y>0' : '')};
    if (kind === 'dashes') look.strokeDash = {value: dash};
    if (kind === 'points') {
        /* what has no logarithm is not drawn */
        if (panel.log) look.opacity = {signal: 'datum.y>0?1:0'};
        look.size = {value: 14};
        look.tooltip = tip;
    }
    var marks = [mark(isDot ? 'symbol' : types[kind] || 'line', look)];
    if (isLine && layer.x.length <= mostPointed)
        marks.push(mark('symbol', {x: x, y: y, size: {value: 90},
                                   opacity: {value: 0}, tooltip: tip}));
    return marks;
}

/* Numbers at an axis: Vega's own, but for those that it would write out with
 * many zeros. */
var tickText = {labels: {update: {text: {signal:
    'datum.value!==0&&(abs(datum.value)<1e-4||abs(datum.value)>=1e5)?' +
    "format(datum.value,'.3~e'):datum.label"}}}};

function axes(f, panel, isLast) {
    var x = {orient: 'bottom', scale: 'x', grid: true,
             labels: isLast, ticks: isLast, encode: tickText,
             tickCount: Math.floor(f.width / 90)};
    var y = {orient: 'left', scale: 'y', grid: true,
             labelOverlap: 'greedy', titleX: f.titleAt, title: panel.title,
             encode: tickText, tickCount: panel.height < 100 ? 3 : 5};
    if (isLast) x.title = f.xTitle;
    if (panel.isCount) y.tickMinStep = 1;
    return [x, y];
}

/* What is dragged over is darkened. */
function brush(panel) {
    return {type: 'rect', interactive: false, encode: {
        enter: constants({y: 0, height: panel.height, fill: look.ink}),
        update: {x: {scale: 'x', signal: 'brush[0]'},
                 x2: {scale: 'x', signal: 'brush[1]'},
                 fillOpacity: {signal: 'dragging?0.15:0'}}}};
}

function panelGroup(f, p, top) {
    var panel = f.panels[p], marks = [];
    var box = {width: f.width, height: panel.height, stroke: look.frame};
    panel.layers.forEach(function (layer, l) {
        marks = marks.concat(layerMarks(f, panel, layer, 'p' + p + 'l' + l));
    });
    var group = {
        type: 'group',
        encode: {enter: constants(Object.assign({y: top}, box))},
        signals: [{name: 'height', value: panel.height}],
        scales: [{name: 'y', type: panel.log ? 'log' : 'linear',
                  domain: [panel.y0, panel.y1], range: [panel.height, 0],
                  zero: false, nice: false},
                 {name: 'z', type: 'linear', domain: [panel.z0, panel.z1],
                  range: {scheme: 'viridis'}}],
        axes: axes(f, panel, p + 1 === f.panels.length),
        marks: [{type: 'group', clip: true,
                 encode: {enter: constants(Object.assign(
                     {fill: 'transparent'}, box))},
                 marks: marks.concat(brush(panel))}]};
    if (panel.zTitle)
        group.legends = [{fill: 'z', type: 'gradient', title: panel.zTitle,
                          gradientLength: panel.height - 30}];
    return group;
}

/* A layer in the legend: its mark at (x, y). */
function legendMark(layer, x, y) {
    function mark(type, look) {
        return {type: type, encode: {enter: constants(look)}};
    }
    switch (layer.kind) {
    case 'band':
    case 'cells':
        return mark('rect', {x: x, y: y - 10, width: 22, height: 11,
                             fill: layer.colour, fillOpacity: layer.opacity});
    case 'points':
        return mark('symbol', {x: x + 11, y: y - 4.5, size: 22,
                               fill: layer.colour});
    case 'errors':
        return mark('rule', {x: x + 11, y: y - 11, y2: y + 2,
                             stroke: layer.colour});
    default:
        return mark('rule', {x: x, x2: x + 22, y: y - 4.5, strokeWidth: 2,
                             stroke: layer.colour,
                             strokeDash: layer.kind === 'dashes' ? dash : []});
    }
}

/* Labels of the first panel in rows above it, and the height they take. */
function legend(f) {
    var x = 0, row = 0, marks = [];
    f.panels[0].layers.forEach(function (layer) {
        if (!layer.label) return;
        var width = 46 + 7.4 * Array.from(layer.label).length;
        if (marks.length && x + width > f.width + 24) {
            x = 0;
            row++;
        }
        var y = row * legendRow + 12;
        marks.push(legendMark(layer, x, y),
                   {type: 'text', encode: {enter: constants(
                       {x: x + 28, y: y, fontSize: 13, text: layer.label,
                        fill: look.ink})}});
        x += width;
    });
    return {marks: marks, height: marks.length ? (row + 1) * legendRow + 4 : 0};
}

function figureSpec(f) {
    var above = legend(f), top = above.height, marks = above.marks;
    f.panels.forEach(function (panel, p) {
        marks.push(panelGroup(f, p, top));
        top += panel.height + gap;
    });
    return {
        width: f.width, height: top - gap, padding: 5,
        background: 'transparent',
        config: {axis: {labelFontSize: 12, titleFontSize: 13,
                        titleFontWeight: 'normal', gridColor: look.grid,
                        labelColor: look.ink, titleColor: look.ink,
                        domainColor: look.frame, tickColor: look.frame},
                 legend: {labelColor: look.ink, titleColor: look.ink}},
        signals: signals(f), data: tables(f),
        scales: [{name: 'x', type: 'linear', domain: {signal: 'xdom'},
                  range: 'width', zero: false, nice: false}],
        marks: marks};
}

/* ---- the page ---- */

/* A figure that fails says so. */
function showFigure(vega, name) {
    var place = document.getElementById('figure-' + name);
    function fail(e) {
        place.textContent = 'This figure cannot be shown here; it is in ' +
            'report/' + name + '.svg.';
        console.error(name, e);
    }
    try {
        var old = tesseraViews[name], f = fitted(tesseraFigures[name], place);
        var view = new vega.View(vega.parse(figureSpec(f)),
            {renderer: 'svg', container: place, hover: true});
        view.tooltip(function (handler, event, item, value) {
            tesseraTip(value === null || value === undefined ? null : value,
                       event);
        });
        tesseraViews[name] = view;
        if (old) {
            view.signal('xdom', old.signal('xdom'));
            old.finalize();
        }
        view.runAsync().then(function () {
            place.setAttribute('data-ready', 'yes');
        }).catch(fail);
    } catch (e) {
        fail(e);
    }
}

/* The same zoom for who has no mouse. */
function listenToKeys(name) {
    var place = document.getElementById('figure-' + name);
    var f = tesseraFigures[name];
    place.tabIndex = 0;
    place.setAttribute('role', 'group');
    place.setAttribute('aria-label', place.parentNode.querySelector(
        'figcaption').textContent + ': + and - zoom, arrows move, 0 goes back');
    place.addEventListener('keydown', function (event) {
        var view = tesseraViews[name], now = view && view.signal('xdom');
        var change = {'+': [0.2, -0.2], '=': [0.2, -0.2], '-': [-0.3, 0.3],
                      ArrowLeft: [-0.15, -0.15], ArrowRight: [0.15, 0.15],
                      '0': 'all'}[event.key];
        if (!change || !now || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        var size = now[1] - now[0];
        view.signal('xdom', change === 'all' ? [f.x0, f.x1]
            : [Math.max(f.x0, now[0] + change[0] * size),
               Math.min(f.x1, now[1] + change[1] * size)]).runAsync();
    });
}

/* One figure of several, with the range of x of the one before. */
function offerChoice(box) {
    var figures = box.querySelectorAll('figure'), now = 0;
    var list = box.querySelector('select');
    function view(i) {
        return tesseraViews[figures[i].querySelector('.vega').id.slice(7)];
    }
    figures.forEach(function (figure, i) {
        list.add(new Option(
            figure.querySelector('figcaption').textContent, i));
        figure.hidden = i > 0;
    });
    list.addEventListener('change', function () {
        var before = view(now);
        figures[now].hidden = true;
        now = +list.value;
        figures[now].hidden = false;
        if (before && view(now))
            view(now).signal('xdom', before.signal('xdom')).runAsync();
    });
}

/* Figures are made anew where the window became wider or narrower, or the page
 * dark or light. */
function showReport() {
    var names = Object.keys(tesseraFigures), wait = null;
    var vega = names.length ? vegaJoin() : null;
    var width = document.body.clientWidth;
    function draw() {
        readLook();
        names.forEach(function (name) { showFigure(vega, name); });
    }
    draw();
    names.forEach(listenToKeys);
    if (vega) document.querySelectorAll('.choice').forEach(offerChoice);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
    window.addEventListener('resize', function () {
        clearTimeout(wait);
        wait = setTimeout(function () {
            if (document.body.clientWidth === width) return;
            width = document.body.clientWidth;
            draw();
        }, 200);
    });
    if (tesseraMolecule)
        showMolecule(document.getElementById('molecule'), tesseraMolecule);
}
