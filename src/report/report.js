/* What the page of a report does in a browser: its figures, as
 * src/report/figure.c draws them, become as wide as the window lets them and
 * take the colours of the page, dark or light. Drag along x to zoom, double
 * click to go back, point at a mark for its numbers; with keys, + and - zoom,
 * arrows move, 0 goes back. Nothing is fetched. */
'use strict';
var tesseraFigures = {};

/* '#0072b2' as three numbers, and back. */
function channels(colour) {
    return [1, 3, 5].map(function (i) {
        return parseInt(colour.slice(i, i + 2), 16);
    });
}

function colourOf(rgb) {
    return '#' + rgb.map(function (x) {
        return (256 + Math.round(x)).toString(16).slice(1);
    }).join('');
}

/* On a dark page dark lines of a figure are light, and what is pale on white is
 * as pale on black. */
function colourOnPage(colour, isDark) {
    var rgb = channels(colour);
    var light = (2 * rgb[0] + 5 * rgb[1] + rgb[2]) / 8;
    if (!isDark || (light > 125 && light < 185)) return colour;
    return colourOf(rgb.map(function (x) {
        var add = light < 80 ? 0.55 : 0.35;
        return light < 185 ? x + add * (255 - x) : 0.45 * x;
    }));
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

/* ---- a figure ---- */

function placeOf(element) {
    return element.getAttribute('data-place').split(' ').map(Number);
}

function set(element, attributes) {
    for (var name in attributes) element.setAttribute(name, attributes[name]);
    return element;
}

function make(name, attributes, within) {
    return within.appendChild(set(document.createElementNS(
        'http://www.w3.org/2000/svg', name), attributes));
}

/* What is known of a figure, where it is drawn, and the range of x that is
 * shown. */
function readFigure(figure) {
    var svg = figure.querySelector('svg'), all = svg.querySelector('.figure');
    var place = placeOf(all), below = svg.querySelector('.below');
    var size = svg.viewBox.baseVal, caption = document.createElement(
        'figcaption');
    caption.textContent = all.querySelector('text').textContent;
    figure.prepend(caption);
    all.querySelector('text').remove();
    return {
        figure: figure, svg: svg, below: below, left: place[0], full: place[1],
        width: place[1], height: size.height, beside: size.width - place[1],
        x: place.slice(2), now: place.slice(2),
        xTitle: below.lastElementChild,
        entries: Array.from(svg.querySelectorAll('.entry')),
        panels: Array.from(svg.querySelectorAll('.panel'), function (g) {
            var p = placeOf(g);
            return {g: g, top: p[0], height: p[1], y: [p[2], p[3]],
                    isLog: p[4], title: g.lastElementChild.textContent,
                    layers: Array.from(g.querySelectorAll('.layer'))};
        }),
        brush: make('rect', {'class': 'brush', width: 0}, svg)};
}

/* Some n numbers in a range, 1, 2 or 5 times a power of ten apart. */
function ticks(low, high, n) {
    var raw = (high - low) / Math.max(n, 1), all = [];
    var power = Math.pow(10, Math.floor(Math.log10(raw))), lead = raw / power;
    var step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
    for (var i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step;
        i++)
        all.push(+(i * step).toPrecision(12));
    return all;
}

/* Rows of the legend; returns by how much they are higher than as drawn. */
function layLegend(f) {
    var x = f.left, y = null, first = 0, last = 0;
    f.entries.forEach(function (entry) {
        var place = placeOf(entry);
        first = y === null ? place[1] : first;
        last = place[1];
        if (y === null) y = first;
        else if (x + place[2] > f.left + f.width + 24) {
            x = f.left;
            y += 20;
        }
        set(entry, {transform: 'translate(' + (x - place[0]) + ' ' +
            (y - place[1]) + ')'});
        x += place[2];
    });
    return y === null ? 0 : y - last;
}

function layTicks(f, panel, isLast) {
    var g = panel.g.querySelector('.ticks'), low = panel.top + panel.height;
    g.textContent = '';
    ticks(f.now[0], f.now[1], Math.floor(f.width / 90)).forEach(function (v) {
        var x = f.left + f.width * (v - f.now[0]) / (f.now[1] - f.now[0]);
        make('line', {x1: x, x2: x, y1: panel.top, y2: low}, g);
        if (isLast)
            make('text', {x: x, y: low + 18, 'text-anchor': 'middle'}, g)
                .textContent = v;
    });
}

/* The figure as it fits, with the range of x as it is now: no wider than what
 * holds it, or, folded, what holds that. */
function lay(f) {
    var box = f.figure.parentNode;
    while (!box.clientWidth) box = box.parentNode;
    f.width = Math.max(150, Math.min(f.full, box.clientWidth - f.beside));
    f.scale = (f.x[1] - f.x[0]) / (f.now[1] - f.now[0]) * f.width / f.full;
    f.shift = f.left * (1 - f.scale) +
        (f.x[0] - f.now[0]) / (f.now[1] - f.now[0]) * f.width;
    f.down = layLegend(f);
    set(f.below, {transform: 'translate(0 ' + f.down + ')'});
    set(f.svg, {width: f.width + f.beside, height: f.height - 30 + f.down,
                viewBox: [0, 30, f.width + f.beside,
                          f.height - 30 + f.down].join(' ')});
    set(f.xTitle, {x: f.left + f.width / 2});
    f.svg.querySelectorAll('.wide').forEach(function (wide) {
        set(wide, wide.tagName === 'line' ? {x2: f.left + f.width}
                                          : {width: f.width});
    });
    f.svg.querySelectorAll('.beside').forEach(function (g) {
        set(g, {transform: 'translate(' + (f.width - f.full) + ' 0)'});
    });
    f.panels.forEach(function (panel, p) {
        layTicks(f, panel, p + 1 === f.panels.length);
        panel.layers.forEach(function (layer) {
            if (layer.matches('.points'))
                layer.querySelectorAll('circle').forEach(function (c, i) {
                    set(c, {cx: f.scale * marksOf(layer)[i][0] + f.shift});
                });
            else
                set(layer, {transform: 'matrix(' + f.scale + ' 0 0 1 ' +
                    f.shift + ' 0)'});
        });
    });
}

/* The range from a to b, within all there is. */
function zoom(f, a, b) {
    f.now = [Math.max(f.x[0], a), Math.min(f.x[1], b)];
    lay(f);
}

/* Figures take the colours of the page, but for the scale of values. */
function colourFigure(f, isDark) {
    f.svg.querySelectorAll('.entry *, .layer:not(.cells) *').forEach(
        function (mark) {
            ['fill', 'stroke'].forEach(function (name) {
                var key = 'data-' + name, own = mark.getAttribute(key) ||
                    mark.getAttribute(name);
                if (!/^#[0-9a-f]{6}$/.test(own)) return;
                mark.setAttribute(key, own);
                mark.setAttribute(name, colourOnPage(own, isDark));
            });
        });
}

/* ---- pointing ---- */

/* Where the marks of a layer are, in pixels, as they were drawn. */
function marksOf(layer) {
    if (layer.marks) return layer.marks;
    layer.marks = [];
    layer.querySelectorAll('path').forEach(function (path) {
        (path.getAttribute('d').match(/[-0-9.]+/g) || []).forEach(
            function (y, i, all) {
                if (i % 2) layer.marks.push([+all[i - 1], +y]);
            });
    });
    layer.querySelectorAll('circle').forEach(function (c) {
        layer.marks.push([+c.getAttribute('cx'), +c.getAttribute('cy')]);
    });
    return layer.marks;
}

/* The mouse in the picture's pixels. */
function mouseAt(f, event) {
    var box = f.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top + 30 - f.down];
}

/* The numbers of a mark that was drawn at a place. */
function tell(f, panel, layer, at, z) {
    var rows = {}, up = 1 - (at[1] - panel.top) / panel.height;
    var low = panel.y[0], high = panel.y[1];
    var y = panel.isLog ? low * Math.pow(high / low, up)
        : low + up * (high - low);
    function text(v) { return '' + +v.toPrecision(4); }
    if (layer.dataset.label) rows[''] = layer.dataset.label;
    rows[f.xTitle.textContent] = text(f.x[0] + (at[0] - f.left) / f.full *
        (f.x[1] - f.x[0]));
    rows[panel.title + (panel.title === f.xTitle.textContent ? ' (up)' : '')] =
        text(y);
    if (z) rows.value = z;
    return rows;
}

/* The mark that is nearest to the mouse, or the cell under it. */
function pointAtFigure(f, event) {
    var at = mouseAt(f, event), best = 49, rows = null;
    f.panels.forEach(function (panel) {
        if (at[1] < panel.top || at[1] > panel.top + panel.height) return;
        panel.layers.forEach(function (layer) {
            if (layer.matches('.cells') && layer.contains(event.target)) {
                var d = event.target.getAttribute('d').match(/[0-9.]+/g);
                rows = tell(f, panel, layer, [+d[0], +d[1] + +d[3]],
                            event.target.dataset.z);
            }
            if (!layer.matches('.line, .dashes, .points')) return;
            marksOf(layer).forEach(function (mark) {
                var d = Math.pow(f.scale * mark[0] + f.shift - at[0], 2) +
                    Math.pow(mark[1] - at[1], 2);
                if (d >= best) return;
                best = d;
                rows = tell(f, panel, layer, mark);
            });
        });
    });
    tesseraTip(rows, event);
}

function listenToMouse(f) {
    var from = null, to;
    function inside(event) {
        return Math.min(Math.max(mouseAt(f, event)[0] - f.left, 0), f.width);
    }
    function value(x) { return f.now[0] + x / f.width * (f.now[1] - f.now[0]); }
    f.svg.addEventListener('mousedown', function (event) {
        from = to = inside(event);
        event.preventDefault();
        f.figure.focus({preventScroll: true});
    });
    window.addEventListener('mousemove', function (event) {
        if (from === null) return;
        var first = f.panels[0], last = f.panels[f.panels.length - 1];
        to = inside(event);
        set(f.brush, {x: f.left + Math.min(from, to), y: first.top + f.down,
                      width: Math.abs(to - from),
                      height: last.top + last.height - first.top});
    });
    window.addEventListener('mouseup', function () {
        if (from !== null && Math.abs(to - from) > 0.01 * f.width)
            zoom(f, value(Math.min(from, to)), value(Math.max(from, to)));
        from = null;
        set(f.brush, {width: 0});
    });
    f.svg.addEventListener('dblclick', function () {
        zoom(f, f.x[0], f.x[1]);
    });
    f.svg.addEventListener('mousemove', function (event) {
        if (from === null) pointAtFigure(f, event);
    });
    f.svg.addEventListener('mouseleave', function () { tesseraTip(null); });
}

/* The same zoom for who has no mouse. */
function listenToKeys(f) {
    set(f.figure, {tabindex: 0, role: 'group', 'aria-label':
        f.figure.querySelector('figcaption').textContent +
        ': + and - zoom, arrows move, 0 goes back'});
    f.figure.addEventListener('keydown', function (event) {
        var change = {'+': [0.2, -0.2], '=': [0.2, -0.2], '-': [-0.3, 0.3],
                      ArrowLeft: [-0.15, -0.15], ArrowRight: [0.15, 0.15],
                      '0': [-1e9, 1e9]}[event.key];
        var size = f.now[1] - f.now[0];
        if (!change || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        zoom(f, f.now[0] + change[0] * size, f.now[1] + change[1] * size);
    });
}

/* ---- the page ---- */

/* One figure of several, with the range of x of the one before. */
function offerChoice(box) {
    var figures = box.querySelectorAll('figure'), now = 0;
    var list = box.querySelector('select');
    list.parentNode.hidden = false;
    figures.forEach(function (figure, i) {
        list.add(new Option(
            figure.querySelector('figcaption').textContent, i));
        figure.hidden = i > 0;
    });
    list.addEventListener('change', function () {
        var before = tesseraFigures[figures[now].id.slice(7)].now;
        figures[now].hidden = true;
        now = +list.value;
        figures[now].hidden = false;
        zoom(tesseraFigures[figures[now].id.slice(7)], before[0], before[1]);
    });
}

/* Figures are laid anew where the window became wider or narrower, and coloured
 * where the page became dark or light. */
function showReport() {
    var dark = matchMedia('(prefers-color-scheme: dark)'), wait = null;
    var width = document.body.clientWidth, all = [];
    function colour() {
        all.forEach(function (f) { colourFigure(f, dark.matches); });
    }
    document.querySelectorAll('figure[id^=figure-]').forEach(
        function (figure) {
            var f = readFigure(figure);
            all.push(tesseraFigures[figure.id.slice(7)] = f);
            listenToMouse(f);
            listenToKeys(f);
        });
    all.forEach(lay);
    colour();
    document.querySelectorAll('.choice').forEach(offerChoice);
    dark.addEventListener('change', colour);
    window.addEventListener('resize', function () {
        clearTimeout(wait);
        wait = setTimeout(function () {
            if (document.body.clientWidth === width) return;
            width = document.body.clientWidth;
            all.forEach(lay);
        }, 200);
    });
    if (tesseraMolecule)
        showMolecule(document.getElementById('molecule'), tesseraMolecule);
}
