/* The header of MRC2014 and CCP4 maps, through gemmi (Wojdyr 2022, JOSS
 * 7:4200), which knows the words, the order of bytes and of axes.
 *
 * gemmi 0.5 refuses a machine stamp of 0 and files without "MAP ", so both are
 * repaired in a copy of the header before it sees them. The voxels are not read
 * by gemmi: it lacks mode 12, and swaps the bytes of modes 1 and 6 only after
 * having made floats of them. */
extern "C" {
#include "maps/density_map.h"
}

#include <gemmi/ccp4.hpp>

#include <cmath>
#include <cstring>
#include <exception>

namespace
{

enum Word { /* numbers of words, from 1 */
            NX = 1,
            MODE = 4,
            NXSTART = 5,
            MX = 8,
            CELLA = 11,
            CELLB = 14,
            MAPC = 17,
            ISPG = 23,
            NSYMBT = 24,
            LSKFLG = 25,
            ORIGIN = 50,
            MAP = 53,
            MACHST = 54,
            LABEL = 57
};

int32_t word(const unsigned char *raw, int w, bool is_swapped)
{
    int32_t value;
    std::memcpy(&value, raw + 4 * (w - 1), 4);
    if (is_swapped)
        gemmi::swap_four_bytes(&value);
    return value;
}

/* Numbers of voxels and axes are small only in the right order of bytes. */
bool is_plausible(const unsigned char *raw, bool is_swapped)
{
    for (int i = 0; i < 3; i++) {
        int axis = word(raw, MAPC + i, is_swapped);
        int n = word(raw, NX + i, is_swapped);
        if (axis < 0 || axis > 3 || n < 1 || n > 0xffff)
            return false;
    }
    int mode = word(raw, MODE, is_swapped);
    return mode >= 0 && mode < 256;
}

class Header : public gemmi::Ccp4<float>
{
  public:
    Header(const char *path, const unsigned char *given, bool is_swapped)
    {
        unsigned char raw[TSR_MAP_HEADER];
        std::memcpy(raw, given, sizeof raw);
        bool is_little = gemmi::is_little_endian() != is_swapped;
        static const unsigned char little[4] = {0x44, 0x44, 0, 0};
        static const unsigned char big[4] = {0x11, 0x11, 0, 0};
        std::memcpy(raw + 4 * (MACHST - 1), is_little ? little : big, 4);
        std::memcpy(raw + 4 * (MAP - 1), "MAP ", 4);
        std::memset(raw + 4 * (NSYMBT - 1), 0, 4); /* skipped by the caller */
        int unset = 0;
        for (int i = 0; i < 3; i++)
            unset += word(raw, MAPC + i, is_swapped) == 0;
        for (int i = 0; i < 3 && unset == 3; i++)
            raw[4 * (MAPC - 1 + i) + (is_little ? 0 : 3)] =
                static_cast<unsigned char>(i + 1);
        gemmi::MemoryStream stream(reinterpret_cast<char *>(raw), sizeof raw);
        read_ccp4_header(stream, path);
    }
};

/* CCP4's skew matrix, where the words hold one: MRC2014 has other things there,
 * and what programs left in them. */
bool is_skewed(const Header &header)
{
    if (header.header_i32(LSKFLG) != 1)
        return false;
    gemmi::Mat33 m = header.get_skew_transformation().mat;
    double det = m.determinant();
    bool is_rotation = std::fabs(det - 1.0) < 0.01;
    return is_rotation && !m.approx(gemmi::Mat33(), 1e-6);
}

tsr_status check(const char *path, const Header &h, tsr_err *err)
{
    static const char *const angle[] = {"alpha", "beta", "gamma"};
    for (int i = 0; i < 3; i++) {
        double degrees = h.header_float(CELLB + i);
        if (!(std::fabs(degrees - 90.0) < 0.01) && degrees != 0.0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': CELLB (words 14 to 16): %s is %g degrees; "
                            "only rectangular cells can be read, resample the "
                            "map on one",
                            path, angle[i], degrees);
        double length = h.header_float(CELLA + i);
        if (!(length > 0.0 && length < 1e6))
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': CELLA (words 11 to 13): an edge of the cell "
                            "is %g Angstrom",
                            path, length);
        if (h.header_i32(MX + i) < 0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': MX, MY, MZ (words 8 to 10): %d intervals",
                            path, h.header_i32(MX + i));
    }
    if (is_skewed(h))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': LSKFLG (word 25): the map is skewed against its "
                        "atoms, which cannot be read",
                        path);
    int group = h.header_i32(ISPG);
    if (group > 400 && group <= 630)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': ISPG (word 23) is %d: the file holds a stack of "
                        "volumes; give one volume",
                        path, group);
    return TSR_OK;
}

tsr_status fill(const char *path, const Header &h, tsr_map_header *out,
                tsr_err *err)
{
    tsr_status status = check(path, h, err);
    if (status != TSR_OK)
        return status;
    std::array<int, 3> position = h.axis_positions();
    out->mode = h.header_i32(MODE);
    for (int i = 0; i < 3; i++) {
        out->n[i] = h.header_i32(NX + i);
        out->n_start[i] = h.header_i32(NXSTART + i);
        out->axis[i] = h.header_i32(MAPC + i) - 1;
        out->origin[i] = double(h.header_float(ORIGIN + i));
    }
    for (int i = 0; i < 3; i++) {
        int m = h.header_i32(MX + i);
        if (m == 0)
            m = h.header_i32(NX + position[size_t(i)]);
        out->step[i] = double(h.header_float(CELLA + i)) / m;
    }
    return TSR_OK;
}

} // namespace

extern "C" tsr_status
tsr_map_header_read(const char *path, const unsigned char raw[TSR_MAP_HEADER],
                    tsr_map_header *out, tsr_err *err)
{
    *out = tsr_map_header{};
    bool is_swapped = !is_plausible(raw, false);
    if (is_swapped && !is_plausible(raw, true))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is not a density map in MRC, CCP4 or OpenDX "
                        "format: NX, NY, NZ, MODE and MAPC (words 1 to 4, 17) "
                        "make no sense in any order of bytes",
                        path);
    out->is_swapped = is_swapped;
    out->n_extended = word(raw, NSYMBT, is_swapped);
    if (out->n_extended < 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': NSYMBT (word 24): %lld bytes of extended header",
                        path, static_cast<long long>(out->n_extended));
    bool says_little = raw[4 * (MACHST - 1)] == 0x44;
    bool says_big = raw[4 * (MACHST - 1)] == 0x11;
    bool is_little = gemmi::is_little_endian() != is_swapped;
    if (is_little ? !says_little : !says_big)
        std::snprintf(out->remark, sizeof out->remark,
                      "MACHST (word 54) does not tell the order of bytes; the "
                      "header makes sense as %s-endian",
                      is_little ? "little" : "big");
    try {
        return fill(path, Header(path, raw, is_swapped), out, err);
    } catch (const std::exception &problem) {
        return tsr_fail(
            err, TSR_E_DATA, "'%s': %.300s (words %s)", path, problem.what(),
            std::strstr(problem.what(), "angle") != nullptr ? "14 to 16"
                                                            : "17 to 19");
    }
}

extern "C" void tsr_map_header_make(const tsr_map_grid *grid,
                                    const double stats[4], const char *title,
                                    unsigned char raw[TSR_MAP_HEADER])
{
    gemmi::Ccp4<float> map;
    map.grid.nu = grid->n[0], map.grid.nv = grid->n[1];
    map.grid.nw = grid->n[2];
    map.grid.unit_cell.set(grid->n[0] * grid->step[0],
                           grid->n[1] * grid->step[1],
                           grid->n[2] * grid->step[2], 90, 90, 90);
    map.grid.axis_order = gemmi::AxisOrder::XYZ;
    map.prepare_ccp4_header_except_mode_and_stats();
    map.ccp4_header.resize(TSR_MAP_HEADER / 4);
    map.set_header_i32(MODE, 2);
    map.set_header_i32(NSYMBT, 0);
    for (int i = 0; i < 3; i++) {
        map.set_header_float(20 + i, float(stats[i]));
        map.set_header_float(ORIGIN + i, float(grid->origin[i]));
    }
    map.set_header_float(55, float(stats[3]));
    std::string label = std::string(TSR_MAP_MARK) + title;
    label.resize(80, ' ');
    map.set_header_str(LABEL, label);
    std::memcpy(raw, map.ccp4_header.data(), TSR_MAP_HEADER);
}
