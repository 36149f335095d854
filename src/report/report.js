/* The interactive part of a report in a browser. Figures, as
 * src/report/figure.c draws them, get the width of the window and the colours
 * of the page, dark or light. Dragging along x zooms, a double click resets,
 * and pointing at a mark shows its numbers. With the keyboard + and - zoom,
 * arrows move, 0 resets. Nothing is loaded from a network. */
'use strict';
var tesseraFigures = {};

/* '#0072b2' as three numbers, and the reverse. */
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

/* The colour of a mark on the page. On a dark page dark lines become light, and
 * pale ones, nearly white before, become nearly black. */
function colourOnPage(colour, isDark) {
    var rgb = channels(colour);
    var light = (2 * rgb[0] + 5 * rgb[1] + rgb[2]) / 8;
    if (!isDark || (light > 125 && light < 185)) return colour;
    return colourOf(rgb.map(function (x) {
        var add = light < 80 ? 0.55 : 0.35;
        return light < 185 ? x + add * (255 - x) : 0.45 * x;
    }));
}

/* ---- the numbers of a mark, beside the mouse pointer ---- */

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

function positionOf(element) {
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

/* Reads a figure: its parts, positions in pixels as drawn, the full range of x
 * (`x`) and the range shown (`range`). The title becomes a caption. */
function readFigure(figure) {
    var svg = figure.querySelector('svg'), all = svg.querySelector('.figure');
    var position = positionOf(all), below = svg.querySelector('.below');
    var size = svg.viewBox.baseVal, caption = document.createElement(
        'figcaption');
    caption.textContent = all.querySelector('text').textContent;
    figure.prepend(caption);
    all.querySelector('text').remove();
    return {
        figure: figure, svg: svg, below: below, left: position[0],
        full: position[1], width: position[1], height: size.height,
        beside: size.width - position[1],
        x: position.slice(2), range: position.slice(2),
        xTitle: below.lastElementChild,
        entries: Array.from(svg.querySelectorAll('.entry')),
        panels: Array.from(svg.querySelectorAll('.panel'), function (g) {
            var p = positionOf(g);
            return {g: g, top: p[0], height: p[1], y: [p[2], p[3]],
                    isLog: p[4], title: g.lastElementChild.textContent,
                    layers: Array.from(g.querySelectorAll('.layer'))};
        }),
        brush: make('rect', {'class': 'brush', width: 0}, svg)};
}

/* About n numbers in a range, their step 1, 2 or 5 times a power of ten. */
function ticks(low, high, n) {
    var raw = (high - low) / Math.max(n, 1), all = [];
    var power = Math.pow(10, Math.floor(Math.log10(raw))), lead = raw / power;
    var step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
    for (var i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step;
        i++)
        all.push(+(i * step).toPrecision(12));
    return all;
}

/* Arranges the entries of the legend in rows; returns by how many pixels the
 * legend is higher than as drawn. */
function layOutLegend(f) {
    var x = f.left, y = null, first = 0, last = 0;
    f.entries.forEach(function (entry) {
        var position = positionOf(entry);
        first = y === null ? position[1] : first;
        last = position[1];
        if (y === null) y = first;
        else if (x + position[2] > f.left + f.width + 24) {
            x = f.left;
            y += 20;
        }
        set(entry, {transform: 'translate(' + (x - position[0]) + ' ' +
            (y - position[1]) + ')'});
        x += position[2];
    });
    return y === null ? 0 : y - last;
}

function layOutTicks(f, panel, isLast) {
    var g = panel.g.querySelector('.ticks'), low = panel.top + panel.height;
    g.textContent = '';
    var first = f.range[0], size = f.range[1] - f.range[0];
    ticks(first, f.range[1], Math.floor(f.width / 90)).forEach(function (v) {
        var x = f.left + f.width * (v - first) / size;
        make('line', {x1: x, x2: x, y1: panel.top, y2: low}, g);
        if (isLast)
            make('text', {x: x, y: low + 18, 'text-anchor': 'middle'}, g)
                .textContent = v;
    });
}

/* Lays out a figure for the range of x shown, at most as wide as its container,
 * or, where that is folded, the next container that is visible. */
function layOut(f) {
    var box = f.figure.parentNode;
    while (!box.clientWidth) box = box.parentNode;
    f.width = Math.max(150, Math.min(f.full, box.clientWidth - f.beside));
    f.scale = (f.x[1] - f.x[0]) / (f.range[1] - f.range[0]) * f.width / f.full;
    f.shift = f.left * (1 - f.scale) +
        (f.x[0] - f.range[0]) / (f.range[1] - f.range[0]) * f.width;
    f.down = layOutLegend(f);
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
        layOutTicks(f, panel, p + 1 === f.panels.length);
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

/* Shows the range from a to b, within the full range. */
function zoom(f, a, b) {
    f.range = [Math.max(f.x[0], a), Math.min(f.x[1], b)];
    layOut(f);
}

/* Gives a figure the colours of the page, except the colour scale of cells. */
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

/* Positions of the marks of a layer, in pixels, as drawn. */
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

/* Position of the mouse in the picture, in pixels as drawn. */
function mouseAt(f, event) {
    var box = f.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top + 30 - f.down];
}

/* The numbers of a mark that was drawn at a position. */
function numbersOf(f, panel, layer, at, z) {
    var rows = {}, up = 1 - (at[1] - panel.top) / panel.height;
    var low = panel.y[0], high = panel.y[1];
    var y = panel.isLog ? low * Math.pow(high / low, up)
        : low + up * (high - low);
    function text(v) { return '' + +v.toPrecision(4); }
    if (layer.dataset.label) rows[''] = layer.dataset.label;
    rows[f.xTitle.textContent] = text(f.x[0] + (at[0] - f.left) / f.full *
        (f.x[1] - f.x[0]));
    rows[panel.title + (panel.title === f.xTitle.textContent ? ' (y)' : '')] =
        text(y);
    if (z) rows.value = z;
    return rows;
}

/* Shows the numbers of the mark nearest to the mouse, or of the cell under it.
 */
function showNumbersAt(f, event) {
    var at = mouseAt(f, event), best = 49, rows = null;
    f.panels.forEach(function (panel) {
        if (at[1] < panel.top || at[1] > panel.top + panel.height) return;
        panel.layers.forEach(function (layer) {
            if (layer.matches('.cells') && layer.contains(event.target)) {
                var d = event.target.getAttribute('d').match(/[0-9.]+/g);
                rows = numbersOf(f, panel, layer, [+d[0], +d[1] + +d[3]],
                            event.target.dataset.z);
            }
            if (!layer.matches('.line, .dashes, .points')) return;
            marksOf(layer).forEach(function (mark) {
                var d = Math.pow(f.scale * mark[0] + f.shift - at[0], 2) +
                    Math.pow(mark[1] - at[1], 2);
                if (d >= best) return;
                best = d;
                rows = numbersOf(f, panel, layer, mark);
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
    function value(x) {
        return f.range[0] + x / f.width * (f.range[1] - f.range[0]);
    }
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
        if (from === null) showNumbersAt(f, event);
    });
    f.svg.addEventListener('mouseleave', function () { tesseraTip(null); });
}

/* Zooming with the keyboard. */
function listenToKeys(f) {
    set(f.figure, {tabindex: 0, role: 'group', 'aria-label':
        f.figure.querySelector('figcaption').textContent +
        ': + and - zoom, arrows move, 0 resets'});
    f.figure.addEventListener('keydown', function (event) {
        var change = {'+': [0.2, -0.2], '=': [0.2, -0.2], '-': [-0.3, 0.3],
                      ArrowLeft: [-0.15, -0.15], ArrowRight: [0.15, 0.15],
                      '0': [-1e9, 1e9]}[event.key];
        var size = f.range[1] - f.range[0];
        if (!change || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        zoom(f, f.range[0] + change[0] * size, f.range[1] + change[1] * size);
    });
}

/* ---- the page ---- */

/* A list that chooses one of several figures. The chosen one gets the range of
 * x of the one before. */
function setUpChoice(box) {
    var figures = box.querySelectorAll('figure'), now = 0;
    var list = box.querySelector('select');
    list.parentNode.hidden = false;
    figures.forEach(function (figure, i) {
        list.add(new Option(
            figure.querySelector('figcaption').textContent, i));
        figure.hidden = i > 0;
    });
    list.addEventListener('change', function () {
        var before = tesseraFigures[figures[now].id.slice(7)].range;
        figures[now].hidden = true;
        now = +list.value;
        figures[now].hidden = false;
        zoom(tesseraFigures[figures[now].id.slice(7)], before[0], before[1]);
    });
}

/* Sets up all figures and the 3D view. Figures are laid out again when the
 * width of the window changes, and coloured again when the page becomes dark or
 * light. */
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
    all.forEach(layOut);
    colour();
    document.querySelectorAll('.choice').forEach(setUpChoice);
    dark.addEventListener('change', colour);
    window.addEventListener('resize', function () {
        clearTimeout(wait);
        wait = setTimeout(function () {
            if (document.body.clientWidth === width) return;
            width = document.body.clientWidth;
            all.forEach(layOut);
        }, 200);
    });
    if (tesseraMolecule)
        showMolecule(document.getElementById('molecule'), tesseraMolecule);
}
