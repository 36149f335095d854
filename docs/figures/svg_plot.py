"""Plots as small SVG files, with the standard library alone.

A panel has a frame, its ticks, and curves clipped to it. Colours are those of
Okabe and Ito (2008); what is told by colour is also told by dashes or a label."""
import math

BLUE, RED, GREEN, ORANGE, PURPLE, SKY = (
    "#0072b2", "#d55e00", "#009e73", "#e69f00", "#aa4499", "#56b4e9")
BLACK, GREY, LIGHT = "#222", "#777", "#ddd"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(x):
    """One decimal of a pixel, without what SVG does not need."""
    text = f"{x:.1f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def relative(points, step, end=""):
    """A path; the steps add up to tenths of a pixel, without drift."""
    tenths = [(round(10 * x), round(10 * y)) for x, y in points]
    out = f"M{short(tenths[0][0] / 10)} {short(tenths[0][1] / 10)}{end}"
    for (x0, y0), (x1, y1) in zip(tenths, tenths[1:]):
        dy = short((y1 - y0) / 10)
        out += (f"{step}{short((x1 - x0) / 10)}"
                f"{'' if dy.startswith('-') else ' '}{dy}{end}")
    return out


def thinned(points, within=0.1):
    """Without the points that lie on the line of the others (Douglas and
    Peucker 1973, with the distance along y)."""
    keep, stack = {0, len(points) - 1}, [(0, len(points) - 1)]
    while stack:
        first, last = stack.pop()
        (x0, y0), (x1, y1) = points[first], points[last]
        off = [abs(y - y0 - (y1 - y0) * (x - x0) / (x1 - x0))
               for x, y in points[first + 1:last]]
        if off and max(off) > within:
            worst = first + 1 + off.index(max(off))
            keep.add(worst)
            stack += [(first, worst), (worst, last)]
    return [points[i] for i in sorted(keep)]


class Figure:
    def __init__(self, width, height, title):
        self.out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="Helvetica,Arial,sans-serif" font-size="13" '
            f'fill="{BLACK}" role="img">', f"<title>{escape(title)}</title>",
            '<rect width="100%" height="100%" fill="#fff"/>']
        self.n_clip = 0

    def add(self, text):
        self.out.append(text)

    def line(self, x0, y0, x1, y1, colour=BLACK, width=1.0, dash=None):
        self.add(f'<path d="M{short(x0)} {short(y0)}L{short(x1)} {short(y1)}" '
                 f'stroke="{colour}" stroke-width="{width}"{dashes(dash)}/>')

    def text(self, x, y, text, anchor="start", size=None, turned=False,
             bold=False):
        more = f' font-size="{size}"' if size else ""
        more += ' font-weight="bold"' if bold else ""
        more += (f' transform="rotate(-90 {short(x)} {short(y)})"' if turned
                 else "")
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.add(f'<text x="{short(x)}" y="{short(y)}"{more}>'
                 f"{escape(text)}</text>")

    def legend(self, x, y, entries, gap=26):
        """entries: (label, colour, dash) or (label, colour, 'dot'), in a row."""
        for label, colour, dash in entries:
            if dash == "dot":
                self.add(f'<circle cx="{x + 12}" cy="{y - 4}" r="2.5" '
                         f'fill="{colour}"/>')
            else:
                self.line(x, y - 4, x + 24, y - 4, colour, 2, dash)
            self.text(x + 30, y, label)
            x += 30 + 6.6 * len(label) + gap

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(self.out + ["</svg>", ""]))


def dashes(dash):
    return f' stroke-dasharray="{dash}"' if dash else ""


def steps(low, high, n):
    raw = (high - low) / n
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw * 0.99)
    return [i * step for i in range(math.ceil(low / step - 1e-9),
                                    math.floor(high / step + 1e-9) + 1)]


class Panel:
    """left, top, width, height in pixels; x and y: the range of each axis. A
    logarithmic y is given, and drawn, as it is."""

    def __init__(self, figure, left, top, width, height, x, y, log=False):
        self.figure, self.log = figure, log
        self.left, self.top, self.width, self.height = left, top, width, height
        self.x = x
        self.y = tuple(map(math.log10, y)) if log else y
        figure.n_clip += 1
        self.clip = f"c{figure.n_clip}"
        figure.add(f'<clipPath id="{self.clip}"><rect x="{left}" y="{top}" '
                   f'width="{width}" height="{height}"/></clipPath>')

    def at(self, x, y):
        y = math.log10(y) if self.log else y
        return (self.left + (x - self.x[0]) / (self.x[1] - self.x[0])
                * self.width,
                self.top + (self.y[1] - y) / (self.y[1] - self.y[0])
                * self.height)

    def axes(self, x_label=None, y_label=None, x_numbers=True, n_x=5, n_y=4,
             y_ticks=None):
        f, right = self.figure, self.left + self.width
        bottom = self.top + self.height
        for x in steps(*self.x, n_x):
            px = self.at(x, 10.0 ** self.y[0] if self.log else 0)[0]
            f.line(px, self.top, px, bottom, LIGHT)
            if x_numbers:
                f.text(px, bottom + 16, f"{x:.6g}", "middle", 12)
        if self.log:
            decades = range(math.ceil(self.y[0] - 1e-9),
                            math.floor(self.y[1] + 1e-9) + 1)
            # Where the axis is wide, every second or third has its number.
            every = 1 + (len(decades) - 1) // 6
            for i, d in enumerate(decades):
                py = self.at(self.x[0], 10.0 ** d)[1]
                f.line(self.left, py, right, py, LIGHT)
                if i % every == 0:
                    f.text(self.left - 5, py + 4,
                           "10" + str(d).translate(SUPERSCRIPT), "end", 12)
        else:
            for y in y_ticks or steps(*self.y, n_y):
                py = self.at(self.x[0], y)[1]
                f.line(self.left, py, right, py, LIGHT)
                f.text(self.left - 5, py + 4,
                       f"{y:.6g}".replace("-", "−"), "end", 12)
        f.add(f'<rect x="{self.left}" y="{self.top}" width="{self.width}" '
              f'height="{self.height}" fill="none" stroke="#444"/>')
        if x_label:
            f.text(self.left + self.width / 2, bottom + 34, x_label, "middle")
        if y_label:
            f.text(self.left - 44, self.top + self.height / 2, y_label,
                   "middle", turned=True)

    def curve(self, x, y, colour, width=1.6, dash=None):
        points = thinned([self.at(a, b) for a, b in zip(x, y)
                          if not self.log or b > 0.0])
        self.figure.add(f'<path clip-path="url(#{self.clip})" '
                        f'd="{relative(points, "l")}" fill="none" '
                        f'stroke="{colour}" stroke-width="{width}"'
                        f"{dashes(dash)}/>")

    def dots(self, x, y, colour, size=3.0, error=None):
        """error: bars where they are longer than the dots."""
        points, bars = [], ""
        for i, (a, b) in enumerate(zip(x, y)):
            if self.log and b <= 0.0:
                continue
            points.append(self.at(a, b))
            if error is None:
                continue
            low = max(b - error[i], 10.0 ** self.y[0] if self.log else -1e99)
            y0, y1 = self.at(a, low)[1], self.at(a, b + error[i])[1]
            if y0 - y1 > size:
                bars += f"M{short(points[-1][0])} {short(y0)}V{short(y1)}"
        if bars:
            self.figure.add(f'<path clip-path="url(#{self.clip})" d="{bars}" '
                            f'stroke="{colour}" stroke-width=".6"/>')
        self.figure.add(f'<path clip-path="url(#{self.clip})" '
                        f'd="{relative(points, "m", "h0")}" '
                        f'stroke="{colour}" stroke-width="{size}" '
                        'stroke-linecap="round"/>')

    def label(self, *lines, right=True, size=13, top=17):
        """In a corner at the top; the first line is bold."""
        for i, line in enumerate(lines):
            self.figure.text(
                self.left + (self.width - 7 if right else 7),
                self.top + top + 16 * i, line, "end" if right else "start",
                size, bold=i == 0)
