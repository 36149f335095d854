/* The parsers of gemmi (Wojdyr 2022, JOSS 7:4200). */
#include "molecule/gemmi_read.hh"

extern "C" {
#include "files/file.h"
#include "molecule/parent.h"
#include "molecule/pdb_text.h"
}

#include <gemmi/cif.hpp>
#include <gemmi/mmcif.hpp>
#include <gemmi/pdb.hpp>
#include <gemmi/resinfo.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace tsr_gemmi
{

const char *const copies_info = "tessera copies";

void refuse(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    throw Refusal{TSR_E_DATA, text};
}

std::string upper(std::string text)
{
    for (char &c : text)
        if (c >= 'a' && c <= 'z')
            c = char(c - 'a' + 'A');
    return text;
}

/* ---- names ---- */

bool has_atom(const gemmi::Residue &residue, const char *name)
{
    for (const gemmi::Atom &atom : residue.atoms)
        if (atom.name == name)
            return true;
    return false;
}

bool is_hydrogen(const gemmi::Atom &atom)
{
    return atom.is_hydrogen() ||
           tsr_parent_is_hydrogen(upper(atom.name).c_str());
}

char main_altloc(const gemmi::Residue &residue)
{
    std::vector<char> letters;
    std::map<char, std::pair<double, int>> sum;
    for (const gemmi::Atom &atom : residue.atoms)
        if (atom.altloc != '\0') {
            if (sum.count(atom.altloc) == 0)
                letters.push_back(atom.altloc);
            sum[atom.altloc].first += double(atom.occ);
            sum[atom.altloc].second++;
        }
    char best = '\0';
    double most = 0.0;
    for (char letter : letters) {
        double mean = sum[letter].first / sum[letter].second;
        if (best == '\0' || mean > most + 1e-6) {
            best = letter;
            most = mean;
        }
    }
    return best;
}

bool is_water(const gemmi::Residue &residue)
{
    static const char *const names[] = {"SOL", "TIP3", "TIP", "TIP4", "SPC",
                                        "WAT", "H2O",  "HOH", "DOD",  "OH2"};
    std::string name = upper(residue.name);
    for (const char *water : names)
        if (name == water)
            return true;
    return residue.entity_type == gemmi::EntityType::Water ||
           gemmi::find_tabulated_residue(name).is_water();
}

std::string name_of(const std::string &chain, const gemmi::Residue &residue)
{
    return residue.name + " " + chain + ":" + residue.seqid.str();
}

/* gemmi's table gives the parent of a modified residue as its one-letter code
 * in lower case. */
const tsr_parent *find_parent(const gemmi::Residue &residue)
{
    std::string name = upper(residue.name);
    gemmi::ResidueInfo info = gemmi::find_tabulated_residue(name);
    if (info.is_amino_acid())
        return tsr_parent_by_letter(char(info.one_letter_code & ~0x20));
    const char *needs;
    const tsr_parent *parent = tsr_parent_by_protonation(name.c_str(), &needs);
    return parent && !info.found() && has_atom(residue, needs) ? parent
                                                               : nullptr;
}

bool is_nucleotide(const gemmi::Residue &residue)
{
    return residue.flag == nucleotide_flag ||
           gemmi::find_tabulated_residue(upper(residue.name)).is_nucleic_acid();
}

namespace
{

/* ---- nucleotides ---- */

const gemmi::Atom *find_sugar_atom(const gemmi::Residue &residue,
                                   std::string name)
{
    for (char prime : {'\'', '*'}) {
        name.back() = prime;
        for (const gemmi::Atom &atom : residue.atoms)
            if (atom.name == name)
                return &atom;
    }
    return nullptr;
}

/* The bond O3'-P between one and the next. */
bool is_bonded(const gemmi::Residue &one, const gemmi::Residue &next)
{
    const double longest = 2.0; /* Angstrom */
    const gemmi::Atom *o3 = find_sugar_atom(one, "O3'");
    for (const gemmi::Atom &p : next.atoms)
        if (o3 != nullptr && p.name == "P" &&
            p.pos.dist_sq(o3->pos) < longest * longest)
            return true;
    return false;
}

/* Modified nucleotides that gemmi's table lacks, and those of programs that
 * name the ends of strands apart (RA5), are known by their sugar and by a bond
 * to another nucleotide, which a ligand of that kind does not have. */
void flag_nucleotides(gemmi::Chain &chain)
{
    for (size_t i = 0; i < chain.residues.size(); i++) {
        gemmi::Residue &residue = chain.residues[i];
        bool has_sugar = !is_nucleotide(residue) && !find_parent(residue);
        for (const char *name : {"C1'", "C3'", "C4'", "C5'", "O3'", "O5'"})
            has_sugar = has_sugar && find_sugar_atom(residue, name) != nullptr;
        if (has_sugar &&
            ((i > 0 && is_bonded(chain.residues[i - 1], residue)) ||
             (i + 1 < chain.residues.size() &&
              is_bonded(residue, chain.residues[i + 1]))))
            residue.flag = nucleotide_flag;
    }
}

/* ---- mmCIF ---- */

bool is_kept_category(const std::string &tag)
{
    std::string category = gemmi::to_lower(tag.substr(0, tag.find('.')));
    return category == "_atom_site" || category == "_entity" ||
           category == "_entity_poly" || category == "_entity_poly_seq" ||
           category == "_struct_asym";
}

/* gemmi finds no atoms where one of these columns is missing. Models often lack
 * them, so they get what the dictionary has as default or a twin column. */
void complete_atom_site(const char *path, gemmi::cif::Loop &loop)
{
    static const struct {
        const char *tag, *twin, *value;
    } column[] = {
        {"_atom_site.id", nullptr, "1"},
        {"_atom_site.type_symbol", nullptr, "?"},
        {"_atom_site.label_alt_id", nullptr, "."},
        {"_atom_site.label_asym_id", "_atom_site.auth_asym_id", "A"},
        {"_atom_site.occupancy", nullptr, "1"},
        {"_atom_site.b_iso_or_equiv", nullptr, "0"},
        {"_atom_site.auth_seq_id", "_atom_site.label_seq_id", "?"},
    };
    for (const auto &c : column) {
        if (loop.find_tag_lc(c.tag) >= 0)
            continue;
        int twin = c.twin ? loop.find_tag_lc(c.twin) : -1;
        std::vector<std::string> values;
        size_t width = loop.width(), length = loop.length();
        for (size_t i = 0; i < length; i++) {
            for (size_t k = 0; k < width; k++)
                values.push_back(loop.val(i, k));
            values.push_back(twin < 0 ? c.value : loop.val(i, size_t(twin)));
        }
        loop.values = std::move(values);
        loop.tags.push_back(c.tag);
    }
    /* Numbers that no int holds; gemmi does not check. */
    static const char *const integer[] = {
        "_atom_site.id", "_atom_site.auth_seq_id", "_atom_site.label_seq_id",
        "_atom_site.pdbx_formal_charge", "_atom_site.pdbx_tls_group_id"};
    for (const char *tag : integer) {
        int k = loop.find_tag_lc(tag);
        for (size_t i = size_t(k); k >= 0 && i < loop.values.size();
             i += loop.width()) {
            if (loop.values[i].size() <= 9)
                continue;
            if (std::strcmp(tag, "_atom_site.id") != 0)
                refuse("'%s': %s '%.40s' is out of range", path, tag,
                       loop.values[i].c_str());
            loop.values[i] = "1";
        }
    }
}

/* gemmi's document with only the categories that say what the atoms are, so
 * that nothing in the others can make the reading fail. */
gemmi::cif::Document parse_cif(const char *path, const std::string &text)
{
    gemmi::cif::Document doc =
        gemmi::cif::read_memory(text.data(), text.size(), path);
    for (gemmi::cif::Block &block : doc.blocks) {
        std::vector<gemmi::cif::Item> kept;
        for (gemmi::cif::Item &item : block.items) {
            bool is_loop = item.type == gemmi::cif::ItemType::Loop;
            bool is_pair = item.type == gemmi::cif::ItemType::Pair;
            if (is_loop && !item.loop.tags.empty() &&
                is_kept_category(item.loop.tags[0])) {
                if (gemmi::istarts_with(item.loop.tags[0], "_atom_site."))
                    complete_atom_site(path, item.loop);
                kept.push_back(std::move(item));
            } else if (is_pair && is_kept_category(item.pair[0])) {
                kept.push_back(std::move(item));
            }
        }
        block.items = std::move(kept);
    }
    return doc;
}

/* Does the text begin with a CIF data block, after blanks and comments? */
bool is_cif(const std::string &text)
{
    size_t at = 0;
    for (;;) {
        at = text.find_first_not_of(" \t\r\n", at);
        if (at == std::string::npos || text[at] != '#')
            break;
        at = text.find('\n', at);
        if (at == std::string::npos)
            break;
    }
    return at != std::string::npos &&
           gemmi::istarts_with(text.substr(at, 5), "data_");
}

gemmi::Structure parse_any(const char *path, const std::string &text,
                           int &n_model)
{
    if (text.find('\0') != std::string::npos)
        refuse("'%s' is not a structure: it is a binary file; give a PDB or "
               "mmCIF file",
               path);
    if (is_cif(text)) {
        gemmi::Structure structure =
            gemmi::make_structure(parse_cif(path, text));
        n_model = int(structure.models.size());
        return structure;
    }
    char *kept;
    size_t size;
    tsr_err err;
    if (tsr_pdb_first_model(path, text.data(), text.size(), &kept, &size,
                            &n_model, &err) != TSR_OK)
        throw Refusal{err.status, err.message};
    std::unique_ptr<char, decltype(&std::free)> owner(kept, &std::free);
    std::string copies = split_copies(kept, size);
    gemmi::Structure structure = gemmi::read_pdb_from_memory(kept, size, path);
    structure.info[copies_info] = copies;
    return structure;
}

/* A blank chain id cannot be named in a configuration: the first free letter.
 */
std::string free_chain_id(const gemmi::Model &model)
{
    for (char c = 'A'; c <= 'Z'; c++) {
        bool is_free = true;
        for (const gemmi::Chain &chain : model.chains)
            is_free = is_free && chain.name != std::string(1, c);
        if (is_free)
            return std::string(1, c);
    }
    return "blank";
}

/* Names and numbers are ASCII; what else a file holds is in comments and
 * titles, and gemmi shifts characters as if none were negative. */
std::string ascii(const char *data, size_t size)
{
    std::string text(data, size);
    if (text.compare(0, 3, "\xef\xbb\xbf") == 0)
        text.erase(0, 3); /* byte order mark */
    for (char &c : text)
        if (static_cast<unsigned char>(c) >= 0x80)
            c = '?';
    return text;
}

double median(std::vector<double> values)
{
    auto middle = values.begin() + long(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return values.empty() ? 0.0 : *middle;
}

/* Other people's messages on one line. */
std::string one_line(std::string text)
{
    for (char &c : text)
        if (c == '\n' || c == '\r')
            c = ' ';
    return text;
}

} // namespace

gemmi::Structure parse(const char *path, const std::string &text, int &n_model)
{
    gemmi::Structure structure = parse_any(path, text, n_model);
    if (structure.models.empty())
        refuse("'%s' is not a structure: it has no atoms; give a PDB or mmCIF "
               "file with coordinates",
               path);
    const std::string letter = free_chain_id(structure.models[0]);
    for (gemmi::Model &model : structure.models)
        for (gemmi::Chain &chain : model.chains) {
            if (chain.name.empty())
                chain.name = letter;
            flag_nucleotides(chain);
        }
    return structure;
}

/* What is larger than that would take hours; and whose residues follow each
 * other at less than an Angstrom, 3.8 in nm, is not in Angstrom. */
void check_model(const char *path, const gemmi::Model &model)
{
    const double most_ang = 1800.0, least_ang = 1.0, same_ang = 0.01;
    std::vector<std::pair<std::string, const gemmi::Residue *>> residues;
    std::vector<double> axis[3], step;
    std::map<std::array<long, 3>, std::string> taken;
    std::string pair;
    size_t n_pair = 0;
    for (const gemmi::Chain &chain : model.chains)
        for (const gemmi::Residue &residue : chain.residues) {
            if (is_water(residue) || residue.atoms.empty())
                continue;
            residues.emplace_back(name_of(chain.name, residue), &residue);
            for (int k = 0; k < 3; k++)
                if (std::isfinite(residue.atoms[0].pos.at(k)))
                    axis[k].push_back(residue.atoms[0].pos.at(k));
        }
    const gemmi::Position middle(median(axis[0]), median(axis[1]),
                                 median(axis[2]));
    gemmi::Position before = middle;
    for (const auto &r : residues) {
        const gemmi::Atom &first = r.second->atoms[0];
        int n_same = 0;
        for (const gemmi::Atom &atom : r.second->atoms) {
            const gemmi::Position &at = atom.pos;
            if (!(at.dist(middle) < most_ang))
                refuse("'%s': atom %s of residue %s is nowhere near the others "
                       "(%g, %g, %g): build it (PDBFixer) or take it out",
                       path, atom.name.c_str(), r.first.c_str(), at.x, at.y,
                       at.z);
            n_same += atom.name != first.name && atom.altloc == first.altloc &&
                      at.dist(first.pos) < same_ang;
        }
        if (n_same > 1)
            refuse("'%s': residue %s has %d atoms in one place (%g, %g, %g): "
                   "build it (PDBFixer) or take it out",
                   path, r.first.c_str(), n_same + 1, first.pos.x, first.pos.y,
                   first.pos.z);
        step.push_back(first.pos.dist(before));
        before = first.pos;
        const gemmi::Vec3 x = first.pos / same_ang;
        auto place = taken.insert(
            {{std::lround(x.x), std::lround(x.y), std::lround(x.z)}, r.first});
        if (!place.second && first.altloc == '\0' && n_pair++ == 0)
            pair = place.first->second + " and " + r.first;
    }
    if (n_pair >= 10 || (n_pair > 0 && 2 * n_pair >= residues.size()))
        refuse("'%s': residues %s are in one place, and %zu pairs more: two "
               "copies of a molecule? Take one out, or put models between "
               "MODEL and ENDMDL",
               path, pair.c_str(), n_pair - 1);
    if (residues.size() > 2 && median(step) < least_ang)
        refuse("'%s': residues that follow each other are %.2f A apart: the "
               "coordinates are in nm; multiply them by 10",
               path, median(step));
}

tsr_status read_file(const char *path,
                     const std::function<void(const std::string &)> &read,
                     tsr_err *err)
{
    char *data;
    size_t size;
    tsr_status status = tsr_file_read(path, &data, &size, err);
    if (status != TSR_OK)
        return status;
    try {
        std::string text = ascii(data, size);
        std::free(data);
        data = nullptr;
        read(text);
    } catch (const Refusal &refusal) {
        status = tsr_fail(err, refusal.status, "%s", refusal.text.c_str());
    } catch (const std::bad_alloc &) {
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory reading '%s'", path);
    } catch (const std::exception &problem) {
        status = tsr_fail(err, TSR_E_DATA,
                          "'%s' cannot be read as PDB or mmCIF: %.500s", path,
                          one_line(problem.what()).c_str());
    } catch (...) {
        status =
            tsr_fail(err, TSR_E_INTERNAL, "unknown failure reading '%s'", path);
    }
    std::free(data);
    return status;
}

} // namespace tsr_gemmi
