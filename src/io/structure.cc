/* Structures through gemmi (Wojdyr 2022, JOSS 7:4200): the parsers, the residue
 * table, the scattering factors. What is protein and what is left out is
 * decided here. No exception leaves this file. */
extern "C" {
#include "io/structure.h"
#include "io/file.h"
#include "io/parent.h"
#include "io/pdb_text.h"
}

#include <gemmi/cif.hpp>
#include <gemmi/it92.hpp>
#include <gemmi/mmcif.hpp>
#include <gemmi/pdb.hpp>
#include <gemmi/resinfo.hpp>

#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace
{

/* A refusal on its way to the caller's tsr_err. */
struct Refusal {
    tsr_status status;
    std::string text;
};

[[noreturn]] void refuse(const char *format, ...) TSR_PRINTF(1, 2);

void refuse(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    throw Refusal{TSR_E_DATA, text};
}

/* ---- names ---- */

std::string upper(std::string text)
{
    for (char &c : text)
        if (c >= 'a' && c <= 'z')
            c = char(c - 'a' + 'A');
    return text;
}

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

/* ---- mmCIF ---- */

bool is_kept_category(const std::string &tag)
{
    std::string category = gemmi::to_lower(tag.substr(0, tag.find('.')));
    return category == "_atom_site" || category == "_entity" ||
           category == "_entity_poly" || category == "_struct_asym";
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

gemmi::Structure parse(const char *path, const std::string &text, int &n_model)
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
    return gemmi::read_pdb_from_memory(kept, size, path);
}

/* ---- what is protein ---- */

typedef std::vector<const gemmi::Residue *> Chain;

/* A peptide bond between two residues, either way round. */
bool is_bonded(const gemmi::Residue &a, const gemmi::Residue &b)
{
    auto near = [](const gemmi::Residue &c_of, const gemmi::Residue &n_of) {
        for (const gemmi::Atom &c : c_of.atoms)
            for (const gemmi::Atom &n : n_of.atoms)
                if (c.name == "C" && n.name == "N" &&
                    c.pos.dist_sq(n.pos) < 2.0 * 2.0)
                    return true;
        return false;
    };
    return near(a, b) || near(b, a);
}

bool has_backbone(const gemmi::Residue &residue)
{
    return has_atom(residue, "N") && has_atom(residue, "CA") &&
           has_atom(residue, "C");
}

bool is_amino_acid(const gemmi::Residue &residue)
{
    return gemmi::find_tabulated_residue(upper(residue.name)).is_amino_acid() ||
           find_parent(residue) != nullptr || has_backbone(residue);
}

/* Numbers that follow each other, with room for a chromophore that was made
 * of three residues. */
bool is_numbered_next(const gemmi::Residue &a, const gemmi::Residue &b)
{
    return a.seqid.num.has_value() && b.seqid.num.has_value() &&
           std::labs(long(*a.seqid.num) - long(*b.seqid.num)) <= 2;
}

/* Amino acids also come as ligands: HETATM records that the file does not call
 * part of a polymer and that no peptide bond holds. Where it says nothing about
 * polymers (no TER, no entities), the numbers tell as well. */
bool is_in_chain(const Chain &chain, size_t i)
{
    const gemmi::Residue &residue = *chain[i];
    if (residue.entity_type == gemmi::EntityType::Polymer ||
        residue.het_flag != 'H')
        return true;
    bool is_unsaid = residue.entity_type == gemmi::EntityType::Unknown;
    for (size_t k : {i - 1, i + 1}) /* i - 1 wraps where there is none */
        if (k < chain.size() && is_amino_acid(*chain[k]) &&
            (is_bonded(*chain[k], residue) ||
             (is_unsaid && find_parent(residue) &&
              is_numbered_next(*chain[k], residue))))
            return true;
    return false;
}

struct Reader {
    const char *path;
    tsr_structure count; /* only its numbers are used */
    std::vector<tsr_residue_record> residues;
    std::vector<tsr_atom> atoms;

    void add_chain(const std::string &name, const Chain &chain);
    void add_residue(const std::string &chain, const gemmi::Residue &residue);
    tsr_structure *finish(int n_model);
};

void Reader::add_residue(const std::string &chain,
                         const gemmi::Residue &residue)
{
    std::string label = chain + ":" + residue.seqid.str();
    const tsr_parent *parent = find_parent(residue);
    if (parent == nullptr)
        refuse("'%s': residue %s %s in a protein chain is none of the 20 amino "
               "acids and has no known parent among them; rename it and its "
               "atoms to the closest of the 20, or remove it",
               path, residue.name.c_str(), label.c_str());
    if (!has_atom(residue, "CA") && has_atom(residue, "CA1"))
        refuse("'%s': residue %s %s is several residues fused into one; "
               "replace it by the residues it was made of",
               path, residue.name.c_str(), label.c_str());

    tsr_residue_record record{};
    std::snprintf(record.name, sizeof record.name, "%s", parent->name);
    std::snprintf(record.file_name, sizeof record.file_name, "%.7s",
                  residue.name.c_str());
    std::snprintf(record.chain, sizeof record.chain, "%.7s", chain.c_str());
    record.number = *residue.seqid.num;
    record.insertion = residue.seqid.has_icode() ? residue.seqid.icode : ' ';
    record.first_atom = int(atoms.size());
    count.n_mapped += residue.name != parent->name;

    char first_alt = '\0';
    for (const gemmi::Atom &atom : residue.atoms)
        if (first_alt == '\0')
            first_alt = atom.altloc;
    std::map<std::string, const gemmi::Atom *> chosen;
    std::vector<std::string> order;
    for (const gemmi::Atom &atom : residue.atoms) {
        if (is_hydrogen(atom)) {
            count.n_hydrogen++;
            continue;
        }
        std::string raw = upper(atom.name);
        const char *name = tsr_parent_atom(parent, raw.c_str());
        if (name == nullptr || (raw != name && has_atom(residue, name))) {
            count.n_extra_atom++;
            continue;
        }
        const gemmi::Atom *&kept = chosen[name];
        if (kept == nullptr) {
            kept = &atom;
            order.push_back(name);
        } else if (kept->altloc == atom.altloc) {
            if (kept->pos.dist_sq(atom.pos) > 0.01 * 0.01)
                refuse("'%s': chain %s has residue %s %s twice (two atoms %s); "
                       "give each molecule its own chain id, and put models "
                       "between MODEL and ENDMDL",
                       path, chain.c_str(), residue.name.c_str(), label.c_str(),
                       name);
            count.n_extra_atom++; /* the same line twice */
        } else {
            count.n_altloc_atom++;
            if (atom.altloc == first_alt && kept->altloc != '\0')
                kept = &atom;
        }
    }
    for (const std::string &name : order) {
        const gemmi::Position &pos = chosen[name]->pos;
        if (!std::isfinite(pos.x) || !std::isfinite(pos.y) ||
            !std::isfinite(pos.z))
            refuse("'%s': atom %s of residue %s %s has a coordinate that is "
                   "not a finite number; correct it or remove the atom",
                   path, name.c_str(), residue.name.c_str(), label.c_str());
        tsr_atom atom{};
        std::snprintf(atom.name, sizeof atom.name, "%s", name.c_str());
        atom.z = tsr_parent_atomic_number(name.c_str());
        atom.xyz[0] = pos.x, atom.xyz[1] = pos.y, atom.xyz[2] = pos.z;
        atoms.push_back(atom);
    }
    record.n_atom = int(order.size());
    residues.push_back(record);
}

void Reader::add_chain(const std::string &name, const Chain &chain)
{
    std::map<std::pair<int, char>, const gemmi::Residue *> seen;
    for (size_t i = 0; i < chain.size(); i++) {
        const gemmi::Residue &residue = *chain[i];
        auto info = gemmi::find_tabulated_residue(upper(residue.name));
        if (info.is_water() ||
            residue.entity_type == gemmi::EntityType::Water) {
            count.n_water++;
            continue;
        }
        if (info.is_nucleic_acid()) {
            count.n_nucleotide++;
            continue;
        }
        if (!is_amino_acid(residue) || !is_in_chain(chain, i)) {
            count.n_ligand++;
            continue;
        }
        if (!residue.seqid.num.has_value())
            refuse("'%s': a residue %s of chain %s has no number; number the "
                   "residues",
                   path, residue.name.c_str(), name.c_str());
        if (name.size() > 7)
            refuse("'%s': the chain id '%.40s' is longer than 7 characters; "
                   "shorten it",
                   path, name.c_str());
        auto key = std::make_pair(*residue.seqid.num, residue.seqid.icode);
        auto &before = seen[key];
        if (before != nullptr) {
            /* Two residue types at one place, as alternates: the first. */
            int n_alternate = 0;
            for (const gemmi::Atom &atom : residue.atoms) {
                if (atom.altloc == '\0')
                    refuse("'%s': chain %s has residue %s twice (%s and %s); "
                           "give each molecule its own chain id, and put "
                           "models between MODEL and ENDMDL",
                           path, name.c_str(), residue.seqid.str().c_str(),
                           before->name.c_str(), residue.name.c_str());
                n_alternate += !is_hydrogen(atom);
            }
            count.n_altloc_atom += n_alternate;
            continue;
        }
        before = &residue;
        if (residues.empty() || name != residues.back().chain)
            count.n_chain++;
        add_residue(name, residue);
    }
}

template <typename T> T *copy_out(const std::vector<T> &from)
{
    T *to = static_cast<T *>(std::malloc((from.size() + 1) * sizeof(T)));
    if (to != nullptr && !from.empty())
        std::memcpy(to, from.data(), from.size() * sizeof(T));
    return to;
}

tsr_structure *Reader::finish(int n_model)
{
    if (residues.empty())
        refuse("'%s' holds no protein (%d nucleotides, %d ligands, %d waters); "
               "give a structure with amino acids",
               path, count.n_nucleotide, count.n_ligand, count.n_water);
    auto *out = static_cast<tsr_structure *>(std::malloc(sizeof count));
    if (out == nullptr)
        throw std::bad_alloc();
    *out = count;
    out->n_model = n_model - 1;
    out->n_residue = int(residues.size());
    out->n_atom = int(atoms.size());
    out->path = strdup(path);
    out->residue = copy_out(residues);
    out->atom = copy_out(atoms);
    if (!out->path || !out->residue || !out->atom) {
        tsr_structure_free(out);
        throw std::bad_alloc();
    }
    return out;
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

tsr_structure *read(const char *path, const std::string &text)
{
    int n_model = 0;
    gemmi::Structure structure = parse(path, text, n_model);
    if (structure.models.empty())
        refuse("'%s' is not a structure: it has no atoms; give a PDB or mmCIF "
               "file with coordinates",
               path);
    /* A chain's ligands and waters often follow apart: parts of one name are
     * one chain. */
    const gemmi::Model &model = structure.models[0];
    std::vector<std::string> names;
    std::map<std::string, Chain> parts;
    for (const gemmi::Chain &chain : model.chains) {
        if (parts.find(chain.name) == parts.end())
            names.push_back(chain.name);
        for (const gemmi::Residue &residue : chain.residues)
            parts[chain.name].push_back(&residue);
    }
    Reader reader{path, {}, {}, {}};
    for (const std::string &name : names)
        reader.add_chain(name.empty() ? free_chain_id(model) : name,
                         parts[name]);
    return reader.finish(n_model);
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

/* Other people's messages on one line. */
std::string one_line(std::string text)
{
    for (char &c : text)
        if (c == '\n' || c == '\r')
            c = ' ';
    return text;
}

} // namespace

extern "C" tsr_status tsr_structure_read(const char *path, tsr_structure **out,
                                         tsr_err *err)
{
    *out = nullptr;
    char *data;
    size_t size;
    tsr_status status = tsr_file_read(path, &data, &size, err);
    if (status != TSR_OK)
        return status;
    try {
        std::string text = ascii(data, size);
        std::free(data);
        data = nullptr;
        *out = read(path, text);
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

extern "C" double tsr_atom_form_factor(int z, double q_inv_ang)
{
    if (z < 1 || z > 98)
        return NAN;
    double s = q_inv_ang / (4 * gemmi::pi());
    return gemmi::IT92<double>::get(gemmi::El(z)).calculate_sf(s * s);
}

extern "C" double tsr_atom_mass(int z)
{
    if (z < 1 || z > 118)
        return NAN;
    return gemmi::Element(gemmi::El(z)).weight();
}
