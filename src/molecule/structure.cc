/* Structures through gemmi (Wojdyr 2022, JOSS 7:4200): the residue table, the
 * scattering factors. What is protein and what is left out is decided here. */
extern "C" {
#include "molecule/structure.h"
#include "molecule/parent.h"
}

#include "molecule/gemmi_read.hh"

#include <gemmi/c4322.hpp>
#include <gemmi/calculate.hpp>
#include <gemmi/it92.hpp>
#include <gemmi/neutron92.hpp>
#include <gemmi/resinfo.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace tsr_gemmi;

namespace
{

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
    bool is_model; /* what has no backbone is left out, nucleotides will do */
    tsr_structure count; /* only its numbers are used */
    std::vector<tsr_residue_record> residues;
    std::vector<tsr_atom> atoms;
    std::vector<std::pair<std::string, std::string>> declared;
    std::string bare;

    void add_chain(const std::string &name, const Chain &chain);
    void add_residue(const std::string &chain, const gemmi::Residue &residue);
    tsr_structure *finish(int n_model);
    void copy_declared(tsr_structure *out) const;
};

void Reader::add_residue(const std::string &chain,
                         const gemmi::Residue &residue)
{
    const std::string label = name_of(chain, residue);
    const tsr_parent *parent = find_parent(residue);
    if (parent == nullptr)
        refuse("'%s': residue %s in a protein chain is none of the 20 amino "
               "acids and has no known parent among them; rename it and its "
               "atoms to the closest of the 20, or remove it",
               path, label.c_str());
    if (!has_atom(residue, "CA") && has_atom(residue, "CA1"))
        refuse("'%s': residue %s is several residues fused into one; "
               "replace it by the residues it was made of",
               path, label.c_str());

    tsr_residue_record record{};
    std::snprintf(record.name, sizeof record.name, "%s", parent->name);
    std::snprintf(record.file_name, sizeof record.file_name, "%.7s",
                  residue.name.c_str());
    std::snprintf(record.chain, sizeof record.chain, "%.7s", chain.c_str());
    record.number = *residue.seqid.num;
    record.insertion = residue.seqid.has_icode() ? residue.seqid.icode : ' ';
    record.first_atom = int(atoms.size());

    char main_alt = main_altloc(residue);
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
            count.n_modified_atom += residue.name != parent->name;
            record.is_cut = 1;
            continue;
        }
        const gemmi::Atom *&kept = chosen[name];
        if (kept == nullptr) {
            kept = &atom;
            order.push_back(name);
        } else if (kept->altloc == atom.altloc) {
            if (kept->pos.dist_sq(atom.pos) > 0.01 * 0.01)
                refuse("'%s': chain %s has residue %s twice (two atoms %s); "
                       "give each molecule its own chain id, and put models "
                       "between MODEL and ENDMDL",
                       path, chain.c_str(), label.c_str(), name);
            count.n_extra_atom++; /* the same line twice */
        } else {
            count.n_altloc_atom++;
            if (atom.altloc == main_alt && kept->altloc != '\0')
                kept = &atom;
        }
    }
    for (const char *name : {"N", "CA", "C"})
        if (is_model && chosen.count(name) == 0) {
            if (count.n_bare++ < 6)
                bare += " " + label + " (no " + name + ")";
            return;
        }
    if (is_model) {
        const gemmi::Position n = chosen["N"]->pos, ca = chosen["CA"]->pos;
        const gemmi::Position c = chosen["C"]->pos;
        const double angle = gemmi::calculate_angle(n, ca, c);
        if (!(angle > 0.5 && angle < 2.9 && n.dist(ca) < 3 && ca.dist(c) < 3))
            refuse("'%s': residue %s: its N, CA and C lie in line or far "
                   "apart: build it (MODELLER, PDBFixer) or take it out",
                   path, label.c_str());
    }
    count.n_mapped += residue.name != parent->name;
    count.n_chain += residues.empty() || chain != residues.back().chain;
    if (const gemmi::Atom *ca = residue.find_atom("CA", '*'))
        record.b = double(ca->b_iso);
    for (const std::string &name : order) {
        const gemmi::Position &pos = chosen[name]->pos;
        tsr_atom atom{};
        std::snprintf(atom.name, sizeof atom.name, "%s", name.c_str());
        std::snprintf(atom.file_name, sizeof atom.file_name, "%.7s",
                      chosen[name]->name.c_str());
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
        if (is_water(residue)) {
            count.n_water++;
            continue;
        }
        if (is_nucleotide(residue)) {
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

void Reader::copy_declared(tsr_structure *out) const
{
    out->n_declared = 0;
    out->declared = static_cast<tsr_declared *>(
        std::calloc(declared.size() + 1, sizeof *out->declared));
    for (const auto &one : declared) {
        if (out->declared == nullptr)
            return;
        tsr_declared &to = out->declared[out->n_declared];
        to.letters = strdup(one.second.c_str());
        if (to.letters == nullptr)
            throw std::bad_alloc();
        std::snprintf(to.chain, sizeof to.chain, "%.7s", one.first.c_str());
        out->n_declared++;
    }
}

tsr_structure *Reader::finish(int n_model)
{
    std::snprintf(count.bare, sizeof count.bare,
                  "residues without a whole backbone:%s%s; complete it "
                  "(MODELLER, PDBFixer)",
                  bare.c_str(), count.n_bare > 6 ? " ..." : "");
    if (9 * size_t(count.n_bare) > residues.size())
        refuse("'%s': %s", path, count.bare);
    if (residues.empty() && !(is_model && count.n_nucleotide > 0))
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
    copy_declared(out);
    if (!out->path || !out->residue || !out->atom || !out->declared) {
        tsr_structure_free(out);
        throw std::bad_alloc();
    }
    return out;
}

/* ---- what the file says of the sample and of itself ---- */

char letter_of(const std::string &residue)
{
    gemmi::ResidueInfo info =
        gemmi::find_tabulated_residue(upper(residue.substr(0, 3)));
    bool is_known = info.is_amino_acid() && info.one_letter_code != ' ';
    return is_known ? char(info.one_letter_code & ~0x20) : 'X';
}

/* SEQRES records: the chain in column 12, residues from column 20. */
void read_seqres(const std::string &text, Reader &reader)
{
    std::map<std::string, std::string> found;
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, std::min(end - at, size_t(70)));
        at = end + 1;
        if (line.compare(0, 6, "SEQRES") != 0 || line.size() < 22)
            continue;
        std::string chain(line[11] == ' ' ? 0 : 1, line[11]);
        for (size_t k = 19; k + 3 <= line.size(); k += 4)
            if (line[k + 2] != ' ' && line[k] != ' ')
                found[chain] += letter_of(line.substr(k, 3));
    }
    for (const auto &one : found)
        reader.declared.push_back(one);
}

void read_entities(const gemmi::Structure &structure, Reader &reader)
{
    std::map<std::string, bool> seen;
    for (const gemmi::Chain &chain : structure.models[0].chains)
        for (const gemmi::Residue &residue : chain.residues) {
            const gemmi::Entity *entity =
                structure.get_entity(residue.entity_id);
            if (!entity || entity->full_sequence.empty() || seen[chain.name])
                continue;
            std::string letters;
            for (const std::string &name : entity->full_sequence)
                letters += letter_of(name);
            seen[chain.name] = true;
            reader.declared.emplace_back(chain.name, letters);
        }
}

/* Programs that predict say so in the title, or in a category for models. A
 * structure that was measured may tell of a prediction, too, as the model that
 * it was solved with. */
bool says_prediction(const std::string &text)
{
    bool is_measured = text.find("\nEXPDTA    ") != std::string::npos ||
                       text.find("_exptl.method") != std::string::npos ||
                       text.find("_refine.") != std::string::npos;
    return text.find("_ma_qa_metric") != std::string::npos ||
           (!is_measured && (text.find("ALPHAFOLD") != std::string::npos ||
                             text.find("AlphaFold") != std::string::npos ||
                             text.find("ColabFold") != std::string::npos ||
                             text.find("ESMFOLD") != std::string::npos));
}

tsr_structure *read(const char *path, const std::string &text, bool is_model)
{
    int n_model = 0;
    gemmi::Structure structure = parse(path, text, n_model);
    /* A chain's ligands and waters often follow apart: parts of one name are
     * one chain. */
    const gemmi::Model &model = structure.models[0];
    check_model(path, model);
    std::vector<std::string> names;
    std::map<std::string, Chain> parts;
    for (const gemmi::Chain &chain : model.chains) {
        if (parts.find(chain.name) == parts.end())
            names.push_back(chain.name);
        for (const gemmi::Residue &residue : chain.residues)
            parts[chain.name].push_back(&residue);
    }
    Reader reader{path, is_model, {}, {}, {}, {}, {}};
    reader.count.is_prediction = says_prediction(text);
    std::snprintf(reader.count.copies, sizeof reader.count.copies, "%s",
                  structure.info[copies_info].c_str());
    read_seqres(text, reader);
    if (reader.declared.empty())
        read_entities(structure, reader);
    for (const std::string &name : names)
        reader.add_chain(name, parts[name]);
    return reader.finish(n_model);
}

} // namespace

extern "C" tsr_status tsr_structure_read(const char *path, tsr_structure **out,
                                         tsr_err *err)
{
    *out = nullptr;
    return read_file(
        path, [&](const std::string &text) { *out = read(path, text, false); },
        err);
}

extern "C" tsr_status tsr_structure_read_any(const char *path,
                                             tsr_structure **out, tsr_err *err)
{
    *out = nullptr;
    return read_file(
        path, [&](const std::string &text) { *out = read(path, text, true); },
        err);
}

extern "C" double tsr_atom_form_factor(int z, double q_inv_ang)
{
    if (z < 1 || z > 98)
        return NAN;
    double s = q_inv_ang / (4 * gemmi::pi());
    return gemmi::IT92<double>::get(gemmi::El(z)).calculate_sf(s * s);
}

extern "C" double tsr_atom_neutron_length(int z)
{
    static const int absorber[] = {5, 48, 49, 62, 63, 64, 66};
    for (int other : absorber)
        if (z == other)
            return NAN;
    if (z < 1 || z > 98 || !gemmi::Neutron92<double>::has(gemmi::El(z)))
        return NAN;
    return gemmi::Neutron92<double>::get_(gemmi::El(z));
}

extern "C" int tsr_atom_electron_gaussians(int z, double a[5], double b[5])
{
    if (z < 1 || z > 98)
        return 0;
    const auto &table = gemmi::C4322<double>::get(gemmi::El(z));
    for (int k = 0; k < 5; k++) {
        a[k] = table.a(k);
        b[k] = table.b(k);
    }
    return 1;
}

extern "C" double tsr_atom_covalent_radius(int z)
{
    return z < 1 || z > 118 ? NAN
                            : double(gemmi::covalent_radius(gemmi::El(z)));
}

extern "C" double tsr_atom_vdw_radius(int z)
{
    return z < 1 || z > 118 ? NAN : double(gemmi::vdw_radius(gemmi::El(z)));
}

extern "C" int tsr_atom_is_metal(int z)
{
    return z >= 1 && z <= 118 && gemmi::is_metal(gemmi::El(z));
}

extern "C" const char *tsr_atom_symbol(int z)
{
    return z < 1 || z > 118 ? "" : gemmi::element_uppercase_name(gemmi::El(z));
}

extern "C" double tsr_atom_mass(int z)
{
    if (z < 1 || z > 118)
        return NAN;
    return gemmi::Element(gemmi::El(z)).weight();
}
