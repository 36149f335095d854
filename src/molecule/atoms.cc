/* Every atom of a structure, through gemmi (Wojdyr 2022, JOSS 7:4200). */
extern "C" {
#include "molecule/atoms.h"
#include "molecule/structure.h"
}

#include "molecule/gemmi_read.hh"

#include <gemmi/resinfo.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

using namespace tsr_gemmi;

namespace
{

/* 119 in gemmi's list is deuterium. */
int atomic_number(const gemmi::Atom &atom)
{
    return is_hydrogen(atom) && atom.element.ordinal() != 2
               ? 1
               : int(atom.element.ordinal());
}

std::string atom_name(const gemmi::Atom &atom, tsr_molecule_kind kind)
{
    std::string name = upper(atom.name);
    for (char &c : name)
        if (c == '*' && kind == TSR_MOLECULE_NUCLEOTIDE)
            c = '\'';
    return name;
}

typedef std::unordered_map<const gemmi::Atom *, int> Places;

/* The place of each atom among all of a model: by serial number, since gemmi
 * brings parts of a chain together; where numbers repeat, as it has them. */
Places places_of(const gemmi::Model &model)
{
    std::vector<const gemmi::Atom *> atoms;
    for (const gemmi::Chain &chain : model.chains)
        for (const gemmi::Residue &residue : chain.residues)
            for (const gemmi::Atom &atom : residue.atoms)
                atoms.push_back(&atom);
    std::set<int> numbers;
    for (const gemmi::Atom *atom : atoms)
        numbers.insert(atom->serial);
    if (numbers.size() == atoms.size())
        std::sort(atoms.begin(), atoms.end(),
                  [](const gemmi::Atom *a, const gemmi::Atom *b) {
                      return a->serial < b->serial;
                  });
    Places places;
    for (size_t i = 0; i < atoms.size(); i++)
        places[atoms[i]] = int(i);
    return places;
}

struct Reader {
    const char *path;
    tsr_atoms count; /* only its numbers are used */
    Places places;
    std::vector<tsr_file_residue> residues;
    std::vector<tsr_file_atom> atoms;

    void add_residue(const std::string &chain, const gemmi::Residue &residue);
    void add_atom(const gemmi::Residue &residue, const gemmi::Atom &atom,
                  tsr_file_residue &record);
    tsr_atoms *finish();
};

/* One atom, or several of one name where molecules share a chain id. */
bool is_ion(const gemmi::Residue &residue)
{
    for (const gemmi::Atom &atom : residue.atoms)
        if (atom.name != residue.atoms[0].name)
            return false;
    return true;
}

tsr_file_residue describe(const std::string &chain,
                          const gemmi::Residue &residue)
{
    tsr_file_residue record{};
    gemmi::ResidueInfo info =
        gemmi::find_tabulated_residue(upper(residue.name));
    const tsr_parent *parent = find_parent(residue);
    std::snprintf(record.name, sizeof record.name, "%.7s",
                  residue.name.c_str());
    std::snprintf(record.chain, sizeof record.chain, "%.7s", chain.c_str());
    record.number = residue.seqid.num.has_value() ? *residue.seqid.num : 0;
    record.insertion = residue.seqid.has_icode() ? residue.seqid.icode : ' ';
    record.is_tabulated = info.found() || parent != nullptr;
    if (parent != nullptr) {
        record.kind = TSR_MOLECULE_PROTEIN;
        std::snprintf(record.parent, sizeof record.parent, "%s", parent->name);
    } else if (is_nucleotide(residue)) {
        record.kind = TSR_MOLECULE_NUCLEOTIDE;
        if (info.is_standard())
            record.parent[0] = info.one_letter_code;
    } else if (info.kind == gemmi::ResidueInfo::PYR ||
               info.kind == gemmi::ResidueInfo::KET) {
        record.kind = TSR_MOLECULE_SUGAR;
    } else {
        bool is_buffer = info.kind == gemmi::ResidueInfo::BUF;
        record.kind = is_ion(residue) ? TSR_MOLECULE_ION
                      : is_buffer     ? TSR_MOLECULE_BUFFER
                                      : TSR_MOLECULE_OTHER;
    }
    return record;
}

void Reader::add_atom(const gemmi::Residue &residue, const gemmi::Atom &atom,
                      tsr_file_residue &record)
{
    if (atom.name == "SC" && record.kind == TSR_MOLECULE_PROTEIN)
        refuse("'%s': atom SC of residue %s is the centre of a side chain, as "
               "tessera writes coarse-grained models; give --bodies one or "
               "two, or all atoms",
               path, name_of(record.chain, residue).c_str());
    tsr_file_atom out{};
    out.z = atomic_number(atom);
    if (out.z < 1 || out.z > 98) {
        count.n_no_element++;
        return;
    }
    std::snprintf(out.name, sizeof out.name, "%.7s",
                  atom_name(atom, record.kind).c_str());
    out.residue = int(residues.size());
    out.in_file = places.at(&atom);
    out.xyz[0] = atom.pos.x, out.xyz[1] = atom.pos.y, out.xyz[2] = atom.pos.z;
    count.n_hydrogen += out.z == 1;
    count.n_partial += record.kind != TSR_MOLECULE_PROTEIN &&
                       record.kind != TSR_MOLECULE_NUCLEOTIDE &&
                       atom.altloc == '\0' && double(atom.occ) < 0.999;
    atoms.push_back(out);
    record.n_atom++;
}

/* Of atoms of one name that differ in their alternate location the one with the
 * residue's main location, else the first. Two atoms of one name and location
 * are two atoms: molecules may share a chain id. */
void Reader::add_residue(const std::string &chain,
                         const gemmi::Residue &residue)
{
    tsr_file_residue record = describe(chain, residue);
    record.first_atom = int(atoms.size());
    char best = main_altloc(residue);
    std::set<std::string> has_main;
    std::vector<std::pair<std::string, char>> taken;
    for (const gemmi::Atom &atom : residue.atoms)
        if (best != '\0' && atom.altloc == best)
            has_main.insert(atom.name);
    for (const gemmi::Atom &atom : residue.atoms) {
        bool is_taken = atom.altloc == '\0' || atom.altloc == best;
        if (!is_taken && has_main.count(atom.name) == 0) {
            is_taken = true;
            for (const auto &t : taken)
                if (t.first == atom.name)
                    is_taken = t.second == atom.altloc;
            if (is_taken)
                taken.emplace_back(atom.name, atom.altloc);
        }
        if (is_taken)
            add_atom(residue, atom, record);
        else
            count.n_altloc_atom++;
    }
    if (record.n_atom == 0)
        return;
    count.n_kind[record.kind]++;
    residues.push_back(record);
}

/* Two residue types at one place, as alternates: the first is taken. */
bool is_alternate(const gemmi::Residue &before, const gemmi::Residue &residue)
{
    if (before.seqid != residue.seqid || before.name == residue.name)
        return false;
    for (const gemmi::Atom &atom : residue.atoms)
        if (atom.altloc == '\0')
            return false;
    return true;
}

template <typename T> T *copy_out(const std::vector<T> &from)
{
    T *to = static_cast<T *>(std::malloc((from.size() + 1) * sizeof(T)));
    if (to == nullptr)
        throw std::bad_alloc();
    if (!from.empty())
        std::memcpy(to, from.data(), from.size() * sizeof(T));
    return to;
}

tsr_atoms *Reader::finish()
{
    if (atoms.empty())
        refuse("'%s' holds no atoms but %d waters; give a structure", path,
               count.n_water);
    count.path = strdup(path);
    count.atom = nullptr;
    count.residue = nullptr;
    count.n_atom = int(atoms.size());
    count.n_residue = int(residues.size());
    auto *out = static_cast<tsr_atoms *>(std::malloc(sizeof count));
    if (out == nullptr || count.path == nullptr) {
        std::free(out);
        std::free(count.path);
        throw std::bad_alloc();
    }
    *out = count;
    try {
        out->atom = copy_out(atoms);
        out->residue = copy_out(residues);
    } catch (...) {
        tsr_atoms_free(out);
        throw;
    }
    return out;
}

tsr_atoms *read_model(const char *path, const gemmi::Model &model, int n_model)
{
    check_model(path, model);
    Reader reader{path, {}, places_of(model), {}, {}};
    reader.count.n_model = n_model - 1;
    reader.count.n_in_file = int(reader.places.size());
    for (const gemmi::Chain &chain : model.chains) {
        const gemmi::Residue *before = nullptr;
        for (const gemmi::Residue &residue : chain.residues) {
            if (is_water(residue)) {
                reader.count.n_water++;
                continue;
            }
            if (before != nullptr && is_alternate(*before, residue)) {
                reader.count.n_altloc_atom += int(residue.atoms.size());
                continue;
            }
            before = &residue;
            reader.add_residue(chain.name, residue);
        }
    }
    return reader.finish();
}

tsr_atoms *read(const char *path, const std::string &text)
{
    int n_model = 0;
    gemmi::Structure structure = parse(path, text, n_model);
    return read_model(path, structure.models[0], n_model);
}

/* ---- all models ---- */

struct AtomsDelete {
    void operator()(tsr_atoms *atoms) const { tsr_atoms_free(atoms); }
};
typedef std::unique_ptr<tsr_atoms, AtomsDelete> Atoms;

struct Models {
    Atoms first;
    int n = 0;
    std::vector<double> xyz;

    void add(const char *path, Atoms model);
};

bool is_same(const tsr_atoms &a, const tsr_atoms &b)
{
    if (a.n_atom != b.n_atom || a.n_residue != b.n_residue)
        return false;
    for (int i = 0; i < a.n_atom; i++)
        if (std::strcmp(a.atom[i].name, b.atom[i].name) != 0 ||
            a.atom[i].residue != b.atom[i].residue)
            return false;
    return true;
}

void Models::add(const char *path, Atoms model)
{
    n++;
    for (int i = 0; i < model->n_atom; i++)
        xyz.insert(xyz.end(), model->atom[i].xyz, model->atom[i].xyz + 3);
    if (first == nullptr)
        first = std::move(model);
    else if (!is_same(*first, *model))
        refuse("'%s': model %d has other atoms than the first (%d, not %d); "
               "give models of one molecule, or a file each",
               path, n, model->n_atom, first->n_atom);
}

/* Where the text of a PDB file's next model begins, behind its ENDMDL; the end
 * where there is none. */
size_t after_model(const std::string &text, size_t at)
{
    for (; at < text.size(); at++) {
        size_t end = text.find('\n', at);
        bool is_end = text.compare(at, 6, "ENDMDL") == 0;
        at = end == std::string::npos ? text.size() : end;
        if (is_end)
            break;
    }
    return at;
}

bool has_atoms(const std::string &text)
{
    return text.compare(0, 4, "ATOM") == 0 ||
           text.compare(0, 6, "HETATM") == 0 ||
           text.find("\nATOM") != std::string::npos ||
           text.find("\nHETATM") != std::string::npos;
}

/* A PDB text is cut at ENDMDL, so that each model is read, and checked, like a
 * file; mmCIF says the model with every atom. */
Models read_models(const char *path, const std::string &text)
{
    Models all;
    int n_model = 0;
    size_t end = after_model(text, 0);
    if (end >= text.size() || !has_atoms(text.substr(end))) {
        gemmi::Structure structure = parse(path, text, n_model);
        for (const gemmi::Model &model : structure.models)
            all.add(path, Atoms(read_model(path, model, 1)));
        return all;
    }
    for (size_t at = 0; at < text.size(); at = end) {
        end = after_model(text, at);
        std::string part = text.substr(at, end - at);
        if (has_atoms(part))
            all.add(path, Atoms(read(path, part)));
    }
    return all;
}

} // namespace

extern "C" tsr_status tsr_atoms_read(const char *path, tsr_atoms **out,
                                     tsr_err *err)
{
    *out = nullptr;
    return read_file(
        path, [&](const std::string &text) { *out = read(path, text); }, err);
}

extern "C" tsr_status tsr_atoms_read_models(const char *path, tsr_atoms **out,
                                            int *n_model, double (**xyz)[3],
                                            tsr_err *err)
{
    *out = nullptr;
    *xyz = nullptr;
    return read_file(
        path,
        [&](const std::string &text) {
            Models all = read_models(path, text);
            *xyz = reinterpret_cast<double(*)[3]>(copy_out(all.xyz));
            *n_model = all.n;
            *out = all.first.release();
        },
        err);
}

extern "C" int tsr_atoms_are_bonded(const tsr_atoms *atoms, int i, int k)
{
    const double slack = 0.4; /* over the covalent radii, Angstrom */
    const tsr_file_atom &a = atoms->atom[i], &b = atoms->atom[k];
    const double d = std::hypot(a.xyz[0] - b.xyz[0], a.xyz[1] - b.xyz[1],
                                a.xyz[2] - b.xyz[2]);
    return !tsr_atom_is_metal(a.z) && !tsr_atom_is_metal(b.z) &&
           d < tsr_atom_covalent_radius(a.z) + tsr_atom_covalent_radius(b.z) +
                   slack;
}

extern "C" void tsr_atoms_free(tsr_atoms *atoms)
{
    if (atoms == nullptr)
        return;
    std::free(atoms->path);
    std::free(atoms->atom);
    std::free(atoms->residue);
    std::free(atoms);
}
