/* Reads structures through gemmi (Wojdyr 2022, JOSS 7:4200), which provides the
 * parsers, the table of residues and the scattering factors. This file decides
 * which atoms are protein and which are omitted. No exception leaves
 * read_file. */
extern "C" {
#include "molecule/structure.h"

#include "files/file.h"
#include "molecule/residue.h"
#include "molecule/sas_entry.h"
}

#include <cstdint> // before gemmi, which lacks it

#include <gemmi/atof.hpp>
#include <gemmi/c4322.hpp>
#include <gemmi/calculate.hpp>
#include <gemmi/cif.hpp>
#include <gemmi/it92.hpp>
#include <gemmi/mmcif.hpp>
#include <gemmi/model.hpp>
#include <gemmi/neutron92.hpp>
#include <gemmi/numb.hpp>
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
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

/* An error in the file. read_file turns it into TSR_E_DATA. */
struct Refusal {
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
    throw Refusal{text};
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

/* Returns true if atoms of these names in two residues are within bonding
 * distance. */
bool is_bonded(const gemmi::Residue &one, const char *from,
               const gemmi::Residue &next, const char *to)
{
    const double longest = 2.0; /* Angstrom */
    for (const gemmi::Atom &a : one.atoms)
        for (const gemmi::Atom &b : next.atoms)
            if (a.name == from && b.name == to &&
                a.pos.dist_sq(b.pos) < longest * longest)
                return true;
    return false;
}

bool is_hydrogen(const gemmi::Atom &atom)
{
    return atom.is_hydrogen() || tsr_is_hydrogen_name(upper(atom.name).c_str());
}

/* The alternate location with the largest mean occupancy in a residue, or the
 * first of equals; '\0' if the residue has no alternates. */
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

/* "LYS A:12" */
std::string name_of(const std::string &chain, const gemmi::Residue &residue)
{
    return residue.name + " " + chain + ":" + residue.seqid.str();
}

/* The amino acid of a residue, or the amino acid of which the residue is a
 * modification or a protonation state; -1: no amino acid. gemmi's table gives
 * the parent of a modified residue as a one-letter code in lower case. */
int find_amino(const gemmi::Residue &residue)
{
    std::string name = upper(residue.name);
    gemmi::ResidueInfo info = gemmi::find_tabulated_residue(name);
    if (info.is_amino_acid())
        return tsr_amino_by_one(info.one_letter_code);
    const char *needs;
    int amino = tsr_amino_by_protonation(name.c_str(), &needs);
    return amino >= 0 && !info.found() && has_atom(residue, needs) ? amino : -1;
}

/* Marks residues bonded like nucleotides (flag_nucleotides). */
const char nucleotide_flag = 'n';

bool is_nucleotide(const gemmi::Residue &residue)
{
    return residue.flag == nucleotide_flag ||
           gemmi::find_tabulated_residue(upper(residue.name)).is_nucleic_acid();
}

/* ---- nucleotides ---- */

/* Has the residue an atom of this name, which ends with a prime (or, in old
 * files, with an asterisk)? */
bool has_sugar_atom(const gemmi::Residue &residue, std::string name)
{
    if (has_atom(residue, name.c_str()))
        return true;
    name.back() = '*';
    return has_atom(residue, name.c_str());
}

/* Returns true if a bond O3'-P joins two residues. */
bool are_joined(const gemmi::Residue &one, const gemmi::Residue &next)
{
    return is_bonded(one, "O3'", next, "P") || is_bonded(one, "O3*", next, "P");
}

/* Marks modified nucleotides that gemmi's table lacks, and terminal nucleotides
 * that some programs name differently (RA5). They have the atoms of the sugar
 * and a bond to another nucleotide; a ligand has no such bond. */
void flag_nucleotides(gemmi::Chain &chain)
{
    for (size_t i = 0; i < chain.residues.size(); i++) {
        gemmi::Residue &residue = chain.residues[i];
        bool has_sugar = !is_nucleotide(residue) && find_amino(residue) < 0;
        for (const char *name : {"C1'", "C3'", "C4'", "C5'", "O3'", "O5'"})
            has_sugar = has_sugar && has_sugar_atom(residue, name);
        if (has_sugar &&
            ((i > 0 && are_joined(chain.residues[i - 1], residue)) ||
             (i + 1 < chain.residues.size() &&
              are_joined(residue, chain.residues[i + 1]))))
            residue.flag = nucleotide_flag;
    }
}

/* ---- PDB text ---- */

const size_t record =
    81; /* length of a kept record: 80 columns and a newline */

/* Does a line have this record name in columns 1 to 6, padded with blanks? */
bool is_record(const char *line, size_t size, const char *name)
{
    size_t n = std::strlen(name);
    if (size < n || strncasecmp(line, name, n) != 0)
        return false;
    for (; n < 6 && n < size; n++)
        if (line[n] != ' ')
            return false;
    return true;
}

/* Is a line an ATOM or HETATM record? Serial numbers of six digits extend into
 * the columns of the record name. */
bool is_atom(const char *line, size_t size)
{
    return size > 4 && ((strncasecmp(line, "ATOM", 4) == 0 &&
                         (line[4] == ' ' || std::isdigit(line[4]))) ||
                        (size > 6 && strncasecmp(line, "HETATM", 6) == 0));
}

/* Returns true if a field of fixed width holds one number and blanks, by
 * gemmi's rules. */
bool is_number(const char *field, size_t width)
{
    double number;
    const char *end = field + width;
    const auto read = gemmi::fast_from_chars(field, end, number);
    return read.ec == std::errc() &&
           std::all_of(read.ptr, end, [](char c) { return c == ' '; });
}

/* Refuses atoms that gemmi would read incorrectly: it reads an invalid
 * coordinate as 0. */
void check_atom(const char *path, const char *line, size_t size, long number)
{
    static const char *const water[] = {"HOH", "WAT", "DOD",
                                        "H2O", "TIP", "SOL"};
    if (size < 54)
        refuse("'%s', line %ld: the atom record ends before its coordinates "
               "do; is the file complete?",
               path, number);
    for (int k = 0; k < 3; k++)
        if (!is_number(line + 30 + 8 * k, 8))
            refuse("'%s', line %ld: the %c coordinate '%.8s' is not a number; "
                   "columns 31 to 54 must hold x, y, z",
                   path, number, "xyz"[k], line + 30 + 8 * k);
    /* A letter begins a hybrid-36 number. The number of a water is often wrong,
     * and is not used. */
    if (is_number(line + 22, 4) || std::isalpha(line[22]))
        return;
    for (const char *name : water)
        if (strncasecmp(line + 17, name, 3) == 0)
            return;
    refuse("'%s', line %ld: the residue number '%.4s' is not a number; columns "
           "23 to 26 must hold it",
           path, number, line + 22);
}

/* Iterates over the models of a PDB text. */
struct PdbText {
    const char *path;
    const std::string &text;
    size_t at = 0;
    long line = 1;

    bool next_model(std::string *kept);
};

/* Appends the ATOM, HETATM and TER records of the next model to kept (NULL:
 * skips the model). Columns where old files have an id code and line numbers
 * are left blank, so that no other part of the file can make the parser fail.
 * Returns false at the end of the text. Atoms after END are read too: in
 * concatenated files they are further chains, or duplicates, which are refused
 * later. */
bool PdbText::next_model(std::string *kept)
{
    bool in_model = false;
    for (size_t end; at < text.size(); at = end + 1, line++) {
        const char *from = text.data() + at;
        end = std::min(text.find('\n', at), text.size());
        size_t size = end - at;
        while (size > 0 && std::isspace(from[size - 1]))
            size--;
        if (is_atom(from, size)) {
            in_model = true;
            if (kept == nullptr)
                continue;
            check_atom(path, from, size, line);
            /* columns 1 to 66, and 77 to 78 if they hold an element */
            std::string columns(from, std::min(size, size_t(66)));
            columns.resize(record - 1, ' ');
            for (size_t k = 76; k < 78 && k < size; k++)
                if (std::isalpha(from[k]))
                    columns[k] = from[k];
            *kept += columns + '\n';
        } else if (in_model && (is_record(from, size, "MODEL") ||
                                is_record(from, size, "ENDMDL"))) {
            return true;
        } else if (kept != nullptr && size >= 3 &&
                   strncasecmp(from, "TER", 3) == 0 &&
                   (size == 3 || from[3] == ' ')) {
            *kept += "TER\n";
        }
    }
    return in_model;
}

/* ---- copies of a molecule under one chain id ----
 *
 * Biological assemblies and files of older programs contain several molecules
 * with the same chain id. Each copy after the first gets an id of its own. A
 * copy begins where a residue number of the chain is repeated. To avoid false
 * copies, residues with the same number must have the same name, a copy must
 * have at least ten residues, and at most half of them may lie where those of
 * the preceding copy do (such as models without MODEL records). Ligands and
 * ions after a chain are assigned to the copies in the order of their
 * occurrence. */

const int min_residues = 10; /* residues of a copy */
const double same_place_ang = 3.0;

/* Consecutive atom records of one residue. */
struct Run {
    char *line;
    int n;
    bool is_polymer;
    double x[3]; /* position of CA or C1' */
    int copy;
    std::string key() const { return std::string(line + 22, 5); }
    std::string name() const { return std::string(line + 17, 3); }
};

typedef std::map<std::string, const Run *> Copy;

std::string atom_of(const char *line)
{
    return std::string(line + 12, 4);
}

bool is_same_run(const Run &run, const char *line)
{
    return line == run.line + size_t(run.n) * record &&
           std::memcmp(run.line + 17, line + 17, 10) == 0;
}

/* Does a line repeat a single atom? A second ion with the same number is a
 * separate ion. */
bool is_repeated_ion(const Run &run, const char *line)
{
    return run.n == 1 && !run.is_polymer && line[16] == run.line[16] &&
           atom_of(run.line) == atom_of(line);
}

void set_position(Run &run, const char *line)
{
    std::string atom = atom_of(line);
    bool has_position = atom == " CA " || atom == " C1'" || atom == " C1*";
    if (!has_position || std::strncmp(line, "ATOM", 4) != 0)
        return;
    run.is_polymer = true;
    for (int k = 0; k < 3; k++)
        run.x[k] = std::atof(std::string(line + 30 + 8 * k, 8).c_str());
}

/* Runs of each chain id. */
std::map<char, std::vector<Run>> find_runs(std::string &text)
{
    std::map<char, std::vector<Run>> runs;
    for (char *line = &text[0]; *line != '\0';) {
        if (std::strncmp(line, "TER", 3) == 0) {
            line = std::strchr(line, '\n') + 1;
            continue;
        }
        std::vector<Run> &of = runs[line[21]];
        if (of.empty() || !is_same_run(of.back(), line) ||
            is_repeated_ion(of.back(), line))
            of.push_back(Run{line, 0, false, {0.0, 0.0, 0.0}, 0});
        of.back().n++;
        set_position(of.back(), line);
        line += record;
    }
    return runs;
}

bool is_copy(const Copy &first, const Copy &other)
{
    int n_coincident = 0, n_same = 0;
    for (const auto &one : other) {
        auto twin = first.find(one.first);
        if (twin == first.end())
            continue;
        if (twin->second->name() != one.second->name())
            return false;
        const double *a = twin->second->x, *b = one.second->x;
        n_same++;
        n_coincident += std::hypot(std::hypot(a[0] - b[0], a[1] - b[1]),
                                   a[2] - b[2]) < same_place_ang;
    }
    return int(other.size()) >= min_residues &&
           2 * n_same > int(other.size()) && 2 * n_coincident <= n_same;
}

/* Assigns HETATM residues to copies. Within a chain (selenomethionine) a
 * residue belongs to the copy on both sides of it. Otherwise the k-th
 * occurrence belongs to copy k. */
void assign_hetatms(std::vector<Run> &runs, int n_copy)
{
    std::map<std::string, int> seen;
    int before = -1;
    size_t next = 0;
    for (size_t i = 0; i < runs.size(); i++) {
        if (runs[i].is_polymer) {
            before = runs[i].copy;
            continue;
        }
        next = std::max(next, i);
        while (next < runs.size() && !runs[next].is_polymer)
            next++;
        int turn = seen[runs[i].key() + runs[i].name()]++;
        bool is_inside = next < runs.size() && runs[next].copy == before;
        runs[i].copy = is_inside ? before : std::min(turn, n_copy - 1);
    }
}

/* Numbers the copies of one chain id. Returns their number; 1: no copies. */
int number_copies(std::vector<Run> &runs)
{
    std::vector<Copy> copies(1);
    for (Run &run : runs) {
        if (!run.is_polymer)
            continue;
        /* the next residue is an alternate with the same number */
        auto twin = copies.back().find(run.key());
        if (twin != copies.back().end() && run.line[16] != ' ')
            continue;
        if (twin != copies.back().end())
            copies.emplace_back();
        copies.back()[run.key()] = &run;
        run.copy = int(copies.size()) - 1;
    }
    for (size_t k = 1; k < copies.size(); k++)
        if (!is_copy(copies[k - 1], copies[k]))
            return 1;
    assign_hetatms(runs, int(copies.size()));
    return int(copies.size());
}

/* Gives each copy its own chain id. Returns the new ids, "B C D". */
std::string split_copies(std::string &text)
{
    std::map<char, std::vector<Run>> all = find_runs(text);
    std::string new_ids, taken;
    for (const auto &one : all)
        taken += one.first;
    for (auto &one : all) {
        int n = number_copies(one.second);
        std::string ids(1, one.first);
        while (int(ids.size()) < n) {
            char id = tsr_free_letter(taken.c_str());
            if (id == '\0')
                return new_ids;
            ids += id;
            taken += id;
        }
        for (const Run &run : one.second)
            for (int k = 0; n > 1 && k < run.n; k++)
                run.line[size_t(k) * record + 21] = ids[size_t(run.copy)];
        for (int k = 1; k < n; k++)
            new_ids += std::string(new_ids.empty() ? "" : " ") + ids[size_t(k)];
    }
    return new_ids;
}

/* ---- mmCIF ---- */

bool is_kept_category(const std::string &tag)
{
    std::string category = gemmi::to_lower(tag.substr(0, tag.find('.')));
    return category == "_atom_site" || category == "_entity" ||
           category == "_entity_poly" || category == "_entity_poly_seq" ||
           category == "_struct_asym";
}

/* Adds columns that gemmi requires. Models often lack them. The values are
 * those of an equivalent column or the default of the dictionary. */
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
    /* Refuses integers that do not fit an int, which gemmi does not check. */
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

/* Parses mmCIF and keeps only categories that describe atoms, so that no other
 * category can make the conversion fail. */
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

/* Returns true if the text begins with a CIF data block, after blanks and
 * comments. */
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

/* Replaces other characters than ASCII. They occur in comments and titles only,
 * and gemmi does not handle negative char values. */
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

struct Parsed {
    gemmi::Structure structure; /* the first model is [0] */
    int n_model;                /* models in the file */
    std::string copies;         /* new chain ids of copies */
};

/* Checks that gemmi found atoms, names chains with a blank id (a configuration
 * could not refer to them) by the first free letter, and marks nucleotides. */
gemmi::Structure check_structure(const char *path, gemmi::Structure structure)
{
    if (structure.models.empty())
        refuse("'%s' is not a structure: it has no atoms; give a PDB or mmCIF "
               "file with coordinates",
               path);
    std::string taken;
    for (const gemmi::Chain &chain : structure.models[0].chains)
        taken += chain.name.size() == 1 ? chain.name : "";
    const char letter[2] = {tsr_free_letter(taken.c_str()), '\0'};
    for (gemmi::Model &model : structure.models)
        for (gemmi::Chain &chain : model.chains) {
            if (chain.name.empty())
                chain.name = letter[0] != '\0' ? letter : "blank";
            flag_nucleotides(chain);
        }
    return structure;
}

/* Parses records kept by next_model. is_own: written by tessera, so that no
 * chain contains copies. */
gemmi::Structure parse_pdb(const char *path, std::string kept, bool is_own,
                           std::string &copies)
{
    copies = is_own ? "" : split_copies(kept);
    return check_structure(
        path, gemmi::read_pdb_from_memory(kept.data(), kept.size(), path));
}

/* Reads PDB or mmCIF, depending on the text. */
Parsed parse(const char *path, const std::string &text, bool is_own = false)
{
    Parsed out;
    if (text.find('\0') != std::string::npos)
        refuse("'%s' is not a structure: it is a binary file; give a PDB or "
               "mmCIF file",
               path);
    if (is_cif(text)) {
        out.structure =
            check_structure(path, gemmi::make_structure(parse_cif(path, text)));
        out.n_model = int(out.structure.models.size());
        return out;
    }
    std::string kept;
    PdbText pdb{path, text};
    out.n_model = pdb.next_model(&kept);
    if (out.n_model == 0)
        refuse("'%s' is not a structure: it has no atom records of PDB and "
               "does not begin as mmCIF; give a PDB or mmCIF file",
               path);
    while (pdb.next_model(nullptr))
        out.n_model++;
    out.structure = parse_pdb(path, kept, is_own, out.copies);
    return out;
}

/* Refuses coordinates that no molecule can have, for every command: atoms far
 * from the others or not finite, residues whose atoms coincide, copies at the
 * same position, coordinates in nm. Waters are not checked. A larger extent
 * would take hours to compute. Consecutive residues are 3.8 Angstrom apart; a
 * median below 1 shows that the unit is nm. */
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

/* Replaces line breaks in messages of other libraries. */
std::string one_line(std::string text)
{
    for (char &c : text)
        if (c == '\n' || c == '\r')
            c = ' ';
    return text;
}

/* ---- results in C structs ---- */

struct Free {
    void operator()(tsr_structure *s) const { tsr_structure_free(s); }
    void operator()(tsr_atoms *a) const { tsr_atoms_free(a); }
    void operator()(tsr_model_atoms *m) const { tsr_model_atoms_free(m); }
};
template <typename T> using Own = std::unique_ptr<T, Free>;

template <typename T> Own<T> make()
{
    Own<T> out(static_cast<T *>(std::calloc(1, sizeof(T))));
    if (out == nullptr)
        throw std::bad_alloc();
    return out;
}

/* Copies a vector into the pool, with space for one more element. */
template <typename T> T *copy_out(tsr_pool *pool, const std::vector<T> &from)
{
    T *to = static_cast<T *>(tsr_pool_new(pool, from.size() + 1, sizeof(T)));
    if (to == nullptr)
        throw std::bad_alloc();
    if (!from.empty())
        std::memcpy(to, from.data(), from.size() * sizeof(T));
    return to;
}

template <size_t N> void copy_text(char (&to)[N], const std::string &from)
{
    std::snprintf(to, N, "%s", from.c_str());
}

/* Sets chain, number and insertion code of a record of either type. */
template <typename Record>
void name_record(Record &record, const std::string &chain,
                 const gemmi::Residue &residue)
{
    copy_text(record.chain, chain);
    record.number = residue.seqid.num.has_value() ? *residue.seqid.num : 0;
    record.insertion = residue.seqid.has_icode() ? residue.seqid.icode : ' ';
}

/* ---- symmetric assemblies (structure.h) ---- */

/* A chain without its waters: names of its residues, and a point in each. */
struct Copyable {
    std::string residues = {};
    std::vector<gemmi::Position> points = {};
};

Copyable copyable_of(const gemmi::Chain &chain)
{
    Copyable out;
    for (const gemmi::Residue &residue : chain.residues) {
        const gemmi::Atom *at = &residue.atoms[0];
        for (const gemmi::Atom &atom : residue.atoms)
            if (atom.name == "CA" || atom.name == "C1'")
                at = &atom;
        out.residues += residue.name + " ";
        out.points.push_back(at->pos);
    }
    return out;
}

const double (*coordinates(const Copyable &chain))[3]
{
    return reinterpret_cast<const double(*)[3]>(chain.points.data());
}

gemmi::Position moved(const tsr_motion &motion, gemmi::Position x)
{
    tsr_motion_apply(&motion, &x.x);
    return x;
}

/* Distances of the points from their images. */
std::vector<double> distances(const tsr_motion &motion, const Copyable &from,
                              const Copyable &to)
{
    std::vector<double> out;
    for (size_t i = 0; i < from.points.size(); i++)
        out.push_back(to.points[i].dist(moved(motion, from.points[i])));
    return out;
}

/* The distance within which half of the points lie. */
double misfit(const tsr_motion &motion, const Copyable &from,
              const Copyable &to)
{
    return median(distances(motion, from, to));
}

/* Superposes the half of the points that fits best. Begins with all points, and
 * with each quarter of the chain, and keeps the best result. */
tsr_motion superpose(const Copyable &from, const Copyable &to)
{
    const int n = int(from.points.size());
    tsr_motion best{}, motion;
    double least = INFINITY;
    for (int start = 0; start < 5; start++) {
        std::vector<int> kept;
        for (int i = 0; i < n; i++)
            if (start == 0 || 4 * i / n == start - 1)
                kept.push_back(i);
        for (int round = 0; round < 20; round++) {
            tsr_superpose(int(kept.size()), kept.data(), coordinates(to),
                          coordinates(from), &motion);
            const std::vector<double> far = distances(motion, from, to);
            const double half = median(far);
            if (half < least) {
                least = half;
                best = motion;
            }
            kept.clear();
            for (int i = 0; i < n; i++)
                if (far[size_t(i)] <= half)
                    kept.push_back(i);
        }
    }
    return best;
}

/* Replaces a matrix by the nearest rotation: superposes the axes and their
 * opposites on its columns. */
void make_rotation(double matrix[3][3])
{
    double axes[6][3] = {}, columns[6][3];
    tsr_motion motion;
    for (int k = 0; k < 6; k++) {
        axes[k][k % 3] = k < 3 ? 1.0 : -1.0;
        for (int i = 0; i < 3; i++)
            columns[k][i] = axes[k][k % 3] * matrix[i][k % 3];
    }
    tsr_superpose(6, nullptr, columns, axes, &motion);
    std::memcpy(matrix, motion.rotation, sizeof motion.rotation);
}

/* A rotation that places every chain on a chain with the same residues. */
struct Element {
    tsr_motion motion;
    std::vector<size_t> image; /* of each chain */
};

/* Rotations of an assembly that leave no chain in place, and the identity,
 * which is the first. An element is known by the image of one chain. */
struct Assembly {
    const double tolerance_ang =
        2.0; /* of exact rotations; of measured ones: */
    const double nearest_ang = 6.0;
    std::vector<Copyable> chains = {};
    std::vector<Element> elements = {};
    size_t first = 0; /* the chain with most residues */
    std::string why = {};

    explicit Assembly(const gemmi::Model &model);
    bool set_image(Element &element);
    int product(int g, int h) const;
    int order(int g) const;
    std::vector<int> generate(int g, int h) const;
    std::string name(const std::vector<int> &group) const;
    std::vector<int> find(const std::string &wanted) const;
    void idealise(std::vector<int> &group);
};

bool Assembly::set_image(Element &e)
{
    const bool is_identity = elements.empty();
    e.image.clear();
    for (const Copyable &from : chains) {
        size_t best = chains.size();
        double least = nearest_ang;
        for (size_t k = 0; k < chains.size(); k++)
            if (chains[k].residues == from.residues &&
                misfit(e.motion, from, chains[k]) < least) {
                least = misfit(e.motion, from, chains[k]);
                best = k;
            }
        if (best == chains.size() ||
            std::count(e.image.begin(), e.image.end(), best) > 0)
            return false;
        if (!is_identity && best == e.image.size())
            return false;
        e.image.push_back(best);
    }
    return true;
}

Assembly::Assembly(const gemmi::Model &model)
{
    for (const gemmi::Chain &chain : model.chains)
        chains.push_back(copyable_of(chain));
    for (size_t k = 1; k < chains.size(); k++)
        if (chains[k].points.size() > chains[first].points.size())
            first = k;
    Element identity{};
    for (int d = 0; d < 3; d++)
        identity.motion.rotation[d][d] = 1.0;
    if (chains.empty() || chains[first].points.size() < 4 ||
        !set_image(identity))
        return;
    elements.push_back(identity);
    for (size_t k = 0; k < chains.size(); k++) {
        Element e{};
        if (k == first)
            continue;
        if (chains[k].residues != chains[first].residues) {
            why = "chain " + model.chains[k].name + " has " +
                  std::to_string(chains[k].points.size()) +
                  " residues and ligands, chain " + model.chains[first].name +
                  " " + std::to_string(chains[first].points.size()) +
                  ", or others; copies must have the same";
            continue;
        }
        e.motion = superpose(chains[first], chains[k]);
        if (set_image(e) && e.image[first] == k)
            elements.push_back(e);
    }
}

/* Index of g h; -1: the product is no element. */
int Assembly::product(int g, int h) const
{
    const size_t to =
        elements[size_t(g)].image[elements[size_t(h)].image[first]];
    for (size_t k = 0; k < elements.size(); k++)
        if (elements[k].image[first] == to)
            return int(k);
    return -1;
}

int Assembly::order(int g) const
{
    int n = 1;
    for (int power = g; power > 0; n++)
        power = product(g, power);
    return n;
}

/* The group that two elements generate; empty: they generate no group. */
std::vector<int> Assembly::generate(int g, int h) const
{
    std::vector<int> out = {0};
    for (size_t i = 0; i < out.size(); i++)
        for (int by : {g, h}) {
            const int next = product(by, out[i]);
            if (next < 0 || out.size() > TSR_MAX_COPY)
                return {};
            if (std::count(out.begin(), out.end(), next) == 0)
                out.push_back(next);
        }
    std::sort(out.begin(), out.end());
    return out;
}

/* A group of rotations is known by its order and that of its elements. */
std::string Assembly::name(const std::vector<int> &group) const
{
    const int n = int(group.size());
    int most = 1;
    for (int g : group)
        most = std::max(most, order(g));
    if (n < 2)
        return "";
    return most == n              ? "C" + std::to_string(n)
           : 2 * most == n        ? "D" + std::to_string(most)
           : n == 12 && most == 3 ? "T"
           : n == 24 && most == 4 ? "O"
           : n == 60 && most == 5 ? "I"
                                  : "";
}

/* The elements of the wanted group, or of the largest: two elements generate
 * each group of rotations. */
std::vector<int> Assembly::find(const std::string &wanted) const
{
    std::vector<int> best;
    for (int g = 0; g < int(elements.size()); g++)
        for (int h = 0; h <= g; h++) {
            const std::vector<int> group = generate(g, h);
            const std::string own = name(group);
            if (own == wanted)
                return group;
            if (wanted == "auto" && own != "" && group.size() > best.size())
                best = group;
        }
    return best;
}

/* Makes the rotations of a group exact, and orders the group: one of each pair
 * of inverses first. */
void Assembly::idealise(std::vector<int> &group)
{
    double mean[3], centre[3] = {};
    const size_t n = group.size();
    tsr_centroid(int(chains[first].points.size()), nullptr,
                 coordinates(chains[first]), mean);
    for (int g : group) {
        double x[3] = {mean[0], mean[1], mean[2]};
        tsr_motion_apply(&elements[size_t(g)].motion, x);
        for (int d = 0; d < 3; d++)
            centre[d] += x[d] / double(n);
    }
    for (int round = 0; round < 20; round++) {
        std::vector<tsr_motion> exact;
        for (int g : group) {
            tsr_motion sum{};
            for (int h : group) {
                const tsr_motion &of_gh =
                    elements[size_t(product(g, h))].motion;
                const tsr_motion &of_h = elements[size_t(h)].motion;
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++)
                        sum.rotation[i][j] +=
                            tsr_vec3_dot(of_gh.rotation[i], of_h.rotation[j]);
            }
            make_rotation(sum.rotation);
            for (int i = 0; i < 3; i++)
                sum.shift[i] =
                    centre[i] - tsr_vec3_dot(sum.rotation[i], centre);
            exact.push_back(sum);
        }
        for (size_t k = 1; k < n; k++)
            elements[size_t(group[k])].motion = exact[k];
    }
    std::vector<int> unique = {0}, rest;
    for (int g : group) {
        bool is_inverse = false;
        for (int h : unique)
            is_inverse = is_inverse || product(g, h) == 0;
        if (g != 0)
            (is_inverse ? rest : unique).push_back(g);
    }
    group = unique;
    group.insert(group.end(), rest.begin(), rest.end());
}

void place_copy(const tsr_motion &motion, gemmi::Chain &chain)
{
    for (gemmi::Residue &residue : chain.residues)
        for (gemmi::Atom &atom : residue.atoms)
            atom.pos = moved(motion, atom.pos);
}

/* Takes waters and empty residues out, and joins parts of a chain. */
void tidy(gemmi::Model &model)
{
    model.merge_chain_parts();
    for (gemmi::Chain &chain : model.chains) {
        std::vector<gemmi::Residue> &all = chain.residues;
        all.erase(std::remove_if(all.begin(), all.end(),
                                 [](const gemmi::Residue &r) {
                                     return is_water(r) || r.atoms.empty();
                                 }),
                  all.end());
    }
    gemmi::vector_remove_if(model.chains, [](const gemmi::Chain &chain) {
        return chain.residues.empty();
    });
}

/* Replaces the first model by copies of its subunit. wanted: structure.h. */
tsr_symmetry make_symmetric(const char *path, const char *wanted,
                            gemmi::Structure &structure)
{
    tsr_symmetry out{};
    if (wanted == nullptr || wanted[0] == '\0')
        return out;
    gemmi::Model model = structure.models[0];
    tidy(model);
    Assembly assembly(model);
    std::vector<int> group = assembly.find(wanted);
    const bool is_auto = std::strcmp(wanted, "auto") == 0;
    if (group.empty() && is_auto)
        return out;
    if (group.empty()) {
        const std::string largest = assembly.name(assembly.find("auto"));
        refuse("'%s': structure.symmetry: the chains do not form %s: %s%s; "
               "the file must hold all chains of the assembly (gemmi convert "
               "--assembly=1), alike in residues and ligands, none on an axis",
               path, wanted,
               largest.empty() ? "no rotation places all chains on others"
                               : ("their symmetry is " + largest).c_str(),
               assembly.why.empty() ? "" : (" (" + assembly.why + ")").c_str());
    }
    assembly.idealise(group);
    const std::string name = assembly.name(group);
    std::vector<size_t> subunit;
    std::set<size_t> seen;
    for (size_t c = 0; c < model.chains.size(); c++) {
        if (seen.count(c) == 0)
            subunit.push_back(c);
        for (int g : group)
            seen.insert(assembly.elements[size_t(g)].image[c]);
    }
    std::vector<gemmi::Chain> copies;
    std::string taken;
    for (const gemmi::Chain &chain : model.chains)
        taken += chain.name.size() == 1 ? chain.name : "";
    for (int g : group) {
        const Element &e = assembly.elements[size_t(g)];
        for (size_t c : subunit) {
            if (misfit(e.motion, assembly.chains[c],
                       assembly.chains[e.image[c]]) > assembly.tolerance_ang)
                refuse("'%s': structure.symmetry: half of chain %s is more "
                       "than %g A from the place that exact %s gives it",
                       path, model.chains[e.image[c]].name.c_str(),
                       assembly.tolerance_ang, name.c_str());
            gemmi::Chain chain = model.chains[c];
            chain.name = model.chains[e.image[c]].name;
            place_copy(e.motion, chain);
            copies.push_back(chain);
        }
        out.motion[out.n] = e.motion;
        out.weight[out.n] = assembly.order(g) > 2 ? 2 : 1;
        out.n_unique += assembly.order(g) < 3 ? 2 : 1;
        out.n++;
    }
    /* the identity and rotations by 180 degrees are their own inverses */
    out.n_unique /= 2;
    copy_text(out.group, name);
    structure.models[0].chains = std::move(copies);
    return out;
}

/* ---- the protein ---- */

typedef std::vector<const gemmi::Residue *> Chain;

bool has_backbone(const gemmi::Residue &residue)
{
    return has_atom(residue, "N") && has_atom(residue, "CA") &&
           has_atom(residue, "C");
}

bool is_amino_acid(const gemmi::Residue &residue)
{
    return gemmi::find_tabulated_residue(upper(residue.name)).is_amino_acid() ||
           find_amino(residue) >= 0 || has_backbone(residue);
}

/* Returns true if two numbers are consecutive, or differ by 2 as at a
 * chromophore made of three residues. */
bool is_numbered_next(const gemmi::Residue &a, const gemmi::Residue &b)
{
    return a.seqid.num.has_value() && b.seqid.num.has_value() &&
           std::labs(long(*a.seqid.num) - long(*b.seqid.num)) <= 2;
}

/* Amino acids can also be ligands: HETATM records that are not part of a
 * polymer according to the file, and have no peptide bond. If the file has no
 * information on polymers (no TER, no entities), consecutive numbers also count
 * as a bond. */
bool is_in_chain(const Chain &chain, size_t i)
{
    const gemmi::Residue &residue = *chain[i];
    if (residue.entity_type == gemmi::EntityType::Polymer ||
        residue.het_flag != 'H')
        return true;
    bool is_unsaid = residue.entity_type == gemmi::EntityType::Unknown;
    for (size_t k : {i - 1, i + 1}) /* i - 1 wraps around at 0 */
        if (k < chain.size() && is_amino_acid(*chain[k]) &&
            (is_bonded(*chain[k], "C", residue, "N") ||
             is_bonded(residue, "C", *chain[k], "N") ||
             (is_unsaid && find_amino(residue) >= 0 &&
              is_numbered_next(*chain[k], residue))))
            return true;
    return false;
}

struct Protein {
    const char *path;
    bool is_model; /* true: residues without a backbone are left out, and
                      nucleotides alone are accepted */
    Own<tsr_structure> out = make<tsr_structure>();
    std::vector<tsr_residue_record> residues = {};
    std::vector<tsr_atom> atoms = {};
    std::vector<tsr_declared> declared = {};
    std::string incomplete = {};

    void declare(const std::string &chain, const std::string &letters);
    void add_chain(const std::string &name, const Chain &chain);
    void add_residue(const std::string &chain, const gemmi::Residue &residue);
    Own<tsr_structure> finish();
};

void Protein::add_residue(const std::string &chain,
                          const gemmi::Residue &residue)
{
    const std::string label = name_of(chain, residue);
    const int amino = find_amino(residue);
    if (amino < 0)
        refuse("'%s': residue %s in a protein chain is none of the 20 amino "
               "acids and has no known parent among them; rename it and its "
               "atoms to the closest of the 20, or remove it",
               path, label.c_str());
    if (!has_atom(residue, "CA") && has_atom(residue, "CA1"))
        refuse("'%s': residue %s is several residues fused into one; "
               "replace it by the residues it was made of",
               path, label.c_str());

    tsr_residue_record record{};
    const char *three = tsr_amino_table[amino].three;
    const bool is_mapped = residue.name != three;
    name_record(record, chain, residue);
    copy_text(record.name, three);
    copy_text(record.file_name, residue.name);
    record.first_atom = int(atoms.size());

    char main_alt = main_altloc(residue);
    std::map<std::string, const gemmi::Atom *> chosen;
    std::vector<std::string> order;
    for (const gemmi::Atom &atom : residue.atoms) {
        if (is_hydrogen(atom)) {
            out->n_hydrogen++;
            continue;
        }
        std::string raw = upper(atom.name);
        const char *name = tsr_amino_atom_name(tsr_amino(amino), raw.c_str());
        if (name == nullptr || (raw != name && has_atom(residue, name))) {
            out->n_extra_atom++;
            out->n_modified_atom += is_mapped;
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
            out->n_extra_atom++; /* a duplicated record */
        } else {
            out->n_altloc_atom++;
            if (atom.altloc == main_alt && kept->altloc != '\0')
                kept = &atom;
        }
    }
    for (const char *name : {"N", "CA", "C"})
        if (is_model && chosen.count(name) == 0) {
            if (out->n_incomplete++ < 6)
                incomplete += " " + label + " (no " + name + ")";
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
    out->n_renamed += is_mapped;
    out->n_chain += residues.empty() || chain != residues.back().chain;
    if (const gemmi::Atom *ca = residue.find_atom("CA", '*'))
        record.b = double(ca->b_iso);
    for (const std::string &name : order) {
        const gemmi::Position &pos = chosen[name]->pos;
        tsr_atom atom{};
        copy_text(atom.name, name);
        copy_text(atom.file_name, chosen[name]->name);
        atom.z = tsr_amino_atomic_number(name.c_str());
        atom.xyz[0] = pos.x, atom.xyz[1] = pos.y, atom.xyz[2] = pos.z;
        atoms.push_back(atom);
    }
    record.n_atom = int(order.size());
    residues.push_back(record);
}

void Protein::add_chain(const std::string &name, const Chain &chain)
{
    std::map<std::pair<int, char>, const gemmi::Residue *> seen;
    for (size_t i = 0; i < chain.size(); i++) {
        const gemmi::Residue &residue = *chain[i];
        if (is_water(residue)) {
            out->n_water++;
            continue;
        }
        if (is_nucleotide(residue)) {
            out->n_nucleotide++;
            continue;
        }
        if (!is_amino_acid(residue) || !is_in_chain(chain, i)) {
            out->n_ligand++;
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
            /* Alternates of different residue types: the first is kept. */
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
            out->n_altloc_atom += n_alternate;
            continue;
        }
        before = &residue;
        add_residue(name, residue);
    }
}

void Protein::declare(const std::string &chain, const std::string &letters)
{
    tsr_declared one{};
    copy_text(one.chain, chain);
    one.letters = tsr_pool_text(&out->pool, letters.c_str());
    declared.push_back(one);
}

Own<tsr_structure> Protein::finish()
{
    std::snprintf(out->incomplete, sizeof out->incomplete,
                  "residues without a whole backbone:%s%s; complete it "
                  "(MODELLER, PDBFixer)",
                  incomplete.c_str(), out->n_incomplete > 6 ? " ..." : "");
    if (9 * size_t(out->n_incomplete) > residues.size())
        refuse("'%s': %s", path, out->incomplete);
    if (residues.empty() && !(is_model && out->n_nucleotide > 0))
        refuse("'%s' holds no protein (%d nucleotides, %d ligands, %d waters); "
               "give a structure with amino acids",
               path, out->n_nucleotide, out->n_ligand, out->n_water);
    out->n_residue = int(residues.size());
    out->n_atom = int(atoms.size());
    out->n_declared = int(declared.size());
    out->path = tsr_pool_text(&out->pool, path);
    out->residue = copy_out(&out->pool, residues);
    out->atom = copy_out(&out->pool, atoms);
    out->declared = copy_out(&out->pool, declared);
    if (out->pool.failed)
        throw std::bad_alloc();
    return std::move(out);
}

/* ---- declared sequence, prediction ---- */

char letter_of(const std::string &residue)
{
    gemmi::ResidueInfo info =
        gemmi::find_tabulated_residue(upper(residue.substr(0, 3)));
    bool is_known = info.is_amino_acid() && info.one_letter_code != ' ';
    return is_known ? char(info.one_letter_code & ~0x20) : 'X';
}

/* SEQRES records: the chain in column 12, residues from column 20. */
void read_seqres(const std::string &text, Protein &protein)
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
        protein.declare(one.first, one.second);
}

void read_entities(const gemmi::Structure &structure, Protein &protein)
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
            protein.declare(chain.name, letters);
        }
}

/* Prediction programs identify themselves in the title, in a category for
 * models, or by PARENT (OpenFold and ESMFold write it). An experimental
 * structure may also mention a prediction, as the model used to solve it. */
bool is_marked_prediction(const std::string &text)
{
    bool is_measured = text.find("\nEXPDTA    ") != std::string::npos ||
                       text.find("_exptl.method") != std::string::npos ||
                       text.find("_refine.") != std::string::npos;
    return text.find("_ma_qa_metric") != std::string::npos ||
           (!is_measured && (text.find("ALPHAFOLD") != std::string::npos ||
                             text.find("AlphaFold") != std::string::npos ||
                             text.find("ColabFold") != std::string::npos ||
                             text.find("PARENT N/A") != std::string::npos ||
                             text.find("ESMFOLD") != std::string::npos));
}

Own<tsr_structure> read_protein(const char *path, const std::string &text,
                                bool is_model, const char *group)
{
    Parsed file = parse(path, text);
    const tsr_symmetry symmetry = make_symmetric(path, group, file.structure);
    /* Ligands and waters of a chain are often stored separately: parts with the
     * same name are one chain. */
    const gemmi::Model &model = file.structure.models[0];
    check_model(path, model);
    std::vector<std::string> names;
    std::map<std::string, Chain> parts;
    for (const gemmi::Chain &chain : model.chains) {
        if (parts.find(chain.name) == parts.end())
            names.push_back(chain.name);
        for (const gemmi::Residue &residue : chain.residues)
            parts[chain.name].push_back(&residue);
    }
    Protein protein{path, is_model};
    protein.out->symmetry = symmetry;
    protein.out->n_model = file.n_model - 1;
    protein.out->is_prediction = is_marked_prediction(text);
    copy_text(protein.out->copies, file.copies);
    read_seqres(text, protein);
    if (protein.declared.empty())
        read_entities(file.structure, protein);
    for (const std::string &name : names)
        protein.add_chain(name, parts[name]);
    return protein.finish();
}

/* ---- all atoms ---- */

/* element 119 of gemmi is deuterium */
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

typedef std::unordered_map<const gemmi::Atom *, int> AtomOrder;

/* Index of each atom in the order of the file, found from serial numbers,
 * because gemmi merges parts of a chain. If serial numbers repeat, gemmi's
 * order is used. */
AtomOrder atom_order(const gemmi::Model &model)
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
    AtomOrder order;
    for (size_t i = 0; i < atoms.size(); i++)
        order[atoms[i]] = int(i);
    return order;
}

struct AllAtoms {
    const char *path;
    AtomOrder order;
    Own<tsr_atoms> out = make<tsr_atoms>();
    std::vector<tsr_file_residue> residues = {};
    std::vector<tsr_file_atom> atoms = {};

    void add_residue(const std::string &chain, const gemmi::Residue &residue);
    void add_atom(const gemmi::Residue &residue, const gemmi::Atom &atom,
                  tsr_file_residue &record);
    Own<tsr_atoms> finish();
};

/* Is a residue a single atom, or several atoms of one name? Ions may share a
 * residue number. */
bool is_ion(const gemmi::Residue &residue)
{
    for (const gemmi::Atom &atom : residue.atoms)
        if (atom.name != residue.atoms[0].name)
            return false;
    return true;
}

tsr_file_residue make_record(const std::string &chain,
                             const gemmi::Residue &residue)
{
    using Kind = decltype(gemmi::ResidueInfo::kind);
    tsr_file_residue record{};
    gemmi::ResidueInfo info =
        gemmi::find_tabulated_residue(upper(residue.name));
    const int amino = find_amino(residue);
    name_record(record, chain, residue);
    copy_text(record.name, residue.name);
    record.is_tabulated = info.found() || amino >= 0;
    if (amino >= 0) {
        record.kind = TSR_MOLECULE_PROTEIN;
        copy_text(record.parent, tsr_amino_table[amino].three);
    } else if (is_nucleotide(residue)) {
        record.kind = TSR_MOLECULE_NUCLEOTIDE;
        if (info.is_standard())
            record.parent[0] = info.one_letter_code;
    } else if (info.kind == Kind::PYR || info.kind == Kind::KET) {
        record.kind = TSR_MOLECULE_SUGAR;
    } else {
        bool is_buffer = info.kind == Kind::BUF;
        record.kind = is_ion(residue) ? TSR_MOLECULE_ION
                      : is_buffer     ? TSR_MOLECULE_BUFFER
                                      : TSR_MOLECULE_OTHER;
    }
    return record;
}

void AllAtoms::add_atom(const gemmi::Residue &residue, const gemmi::Atom &atom,
                        tsr_file_residue &record)
{
    if (atom.name == "SC" && record.kind == TSR_MOLECULE_PROTEIN)
        refuse("'%s': atom SC of residue %s is the centre of a side chain, as "
               "tessera writes coarse-grained models; give --bodies one or "
               "two, or all atoms",
               path, name_of(record.chain, residue).c_str());
    tsr_file_atom to{};
    /* HG, HO and DY are metals, alone, and hydrogens of a residue */
    to.z = record.kind == TSR_MOLECULE_ION ? atom.element.atomic_number()
                                           : atomic_number(atom);
    if (to.z < 1 || to.z > 98) {
        out->n_no_element++;
        return;
    }
    copy_text(to.name, atom_name(atom, record.kind));
    to.residue = int(residues.size());
    to.in_file = order.at(&atom);
    to.xyz[0] = atom.pos.x, to.xyz[1] = atom.pos.y, to.xyz[2] = atom.pos.z;
    out->n_hydrogen += to.z == 1;
    out->n_partial += record.kind != TSR_MOLECULE_PROTEIN &&
                      record.kind != TSR_MOLECULE_NUCLEOTIDE &&
                      atom.altloc == '\0' && double(atom.occ) < 0.999;
    atoms.push_back(to);
    record.n_atom++;
}

/* Selects one location of each atom: the main alternate location of the
 * residue, or else the first. Two atoms with the same name and location are
 * both kept, because molecules may share a chain id. */
void AllAtoms::add_residue(const std::string &chain,
                           const gemmi::Residue &residue)
{
    tsr_file_residue record = make_record(chain, residue);
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
            out->n_altloc_atom++;
    }
    if (record.n_atom == 0)
        return;
    out->n_kind[record.kind]++;
    residues.push_back(record);
}

/* Is a residue an alternate of the preceding one, with another name? The first
 * is kept. */
bool is_alternate(const gemmi::Residue &before, const gemmi::Residue &residue)
{
    if (before.seqid != residue.seqid || before.name == residue.name)
        return false;
    for (const gemmi::Atom &atom : residue.atoms)
        if (atom.altloc == '\0')
            return false;
    return true;
}

Own<tsr_atoms> AllAtoms::finish()
{
    if (atoms.empty())
        refuse("'%s' holds no atoms but %d waters; give a structure", path,
               out->n_water);
    out->n_atom = int(atoms.size());
    out->n_residue = int(residues.size());
    out->path = tsr_pool_text(&out->pool, path);
    out->atom = copy_out(&out->pool, atoms);
    out->residue = copy_out(&out->pool, residues);
    if (out->pool.failed)
        throw std::bad_alloc();
    return std::move(out);
}

Own<tsr_atoms> read_model(const char *path, const gemmi::Model &model,
                          int n_model)
{
    check_model(path, model);
    AllAtoms all{path, atom_order(model)};
    all.out->n_model = n_model - 1;
    all.out->n_in_file = int(all.order.size());
    for (const gemmi::Chain &chain : model.chains) {
        const gemmi::Residue *before = nullptr;
        for (const gemmi::Residue &residue : chain.residues) {
            if (is_water(residue)) {
                all.out->n_water++;
                continue;
            }
            if (before != nullptr && is_alternate(*before, residue)) {
                all.out->n_altloc_atom += int(residue.atoms.size());
                continue;
            }
            before = &residue;
            all.add_residue(chain.name, residue);
        }
    }
    return all.finish();
}

Own<tsr_atoms> read_atoms(const char *path, const std::string &text,
                          const char *group)
{
    Parsed file = parse(path, text);
    make_symmetric(path, group, file.structure);
    return read_model(path, file.structure.models[0], file.n_model);
}

/* ---- atoms from arrays ---- */

gemmi::Atom atom_of(const tsr_atom_arrays &from, int i)
{
    const std::string symbol = from.element[i] ? from.element[i] : "";
    gemmi::Atom atom;
    atom.element = gemmi::Element(symbol);
    if (symbol.size() > 2 || atom.element.ordinal() == 0)
        refuse("atom %d: '%s' is not the symbol of an element", i,
               symbol.c_str());
    /* numbered names occur in no table of residues */
    atom.name = from.name ? from.name[i] : symbol + std::to_string(i);
    atom.serial = i;
    for (int c = 0; c < 3; c++)
        atom.pos.at(c) = from.xyz[3 * i + c];
    return atom;
}

gemmi::Structure structure_of(const tsr_atom_arrays &from)
{
    gemmi::Structure out;
    out.models.emplace_back("1");
    std::vector<gemmi::Chain> &chains = out.models[0].chains;
    for (int i = 0; i < from.n; i++) {
        const std::string chain = from.chain ? from.chain[i] : "A";
        gemmi::ResidueId id;
        id.name = from.residue ? from.residue[i] : "UNL";
        id.seqid = gemmi::SeqId(from.number ? from.number[i] : 1, ' ');
        if (chains.empty() || chains.back().name != chain)
            chains.emplace_back(chain);
        std::vector<gemmi::Residue> &residues = chains.back().residues;
        if (residues.empty() || !residues.back().matches(id))
            residues.emplace_back(id);
        residues.back().atoms.push_back(atom_of(from, i));
    }
    return out;
}

/* ---- all models ---- */

struct Models {
    const char *path;
    Own<tsr_atoms> first = nullptr;
    int n = 0;
    std::vector<double> xyz = {};

    void add(Own<tsr_atoms> model);
};

bool have_same_atoms(const tsr_atoms &a, const tsr_atoms &b)
{
    if (a.n_atom != b.n_atom || a.n_residue != b.n_residue)
        return false;
    for (int i = 0; i < a.n_atom; i++)
        if (std::strcmp(a.atom[i].name, b.atom[i].name) != 0 ||
            a.atom[i].residue != b.atom[i].residue)
            return false;
    return true;
}

void Models::add(Own<tsr_atoms> model)
{
    n++;
    for (int i = 0; i < model->n_atom; i++)
        xyz.insert(xyz.end(), model->atom[i].xyz, model->atom[i].xyz + 3);
    if (first == nullptr)
        first = std::move(model);
    else if (!have_same_atoms(*first, *model))
        refuse("'%s': model %d has other atoms than the first (%d, not %d); "
               "give models of one molecule, or a file each",
               path, n, model->n_atom, first->n_atom);
}

/* Models of a PDB text are parsed one at a time, so that each is checked like a
 * file, and many models take no more memory than one. In mmCIF each atom record
 * names its model, so all are parsed together. */
Models read_models(const char *path, const std::string &text)
{
    Models all{path};
    const Parsed file = parse(path, text);
    if (is_cif(text) || file.n_model == 1) {
        for (const gemmi::Model &model : file.structure.models)
            all.add(read_model(path, model, 1));
        return all;
    }
    PdbText pdb{path, text};
    for (std::string kept, copies; pdb.next_model(&kept); kept.clear())
        all.add(read_model(path, parse_pdb(path, kept, false, copies).models[0],
                           1));
    return all;
}

/* ---- model.pdb ---- */

tsr_model_atom model_atom_of(const gemmi::Chain &chain,
                             const gemmi::Residue &residue,
                             const gemmi::Atom &atom)
{
    tsr_model_atom out{};
    copy_text(out.name, atom.name);
    copy_text(out.residue, residue.name);
    copy_text(out.element, tsr_atom_symbol(atomic_number(atom)));
    out.chain = chain.name[0];
    out.number = residue.seqid.num.has_value() ? *residue.seqid.num : 0;
    out.insertion = residue.seqid.icode;
    /* amino acids have the names of the 20 */
    out.guest_kind = residue.het_flag == 'H' ? TSR_GUEST_LIGAND
                     : tsr_amino_by_three(residue.name.c_str()) < 0
                         ? TSR_GUEST_NUCLEOTIDE
                         : TSR_GUEST_NONE;
    return out;
}

Own<tsr_model_atoms> read_model_atoms(const char *path, const std::string &text)
{
    const Parsed file = parse(path, text, true);
    const gemmi::Model &model = file.structure.models[0];
    const AtomOrder order = atom_order(model);
    Own<tsr_model_atoms> m(tsr_model_atoms_new(int(order.size())));
    if (m == nullptr)
        throw std::bad_alloc();
    for (const gemmi::Chain &chain : model.chains)
        for (const gemmi::Residue &residue : chain.residues)
            for (const gemmi::Atom &atom : residue.atoms) {
                const int i = order.at(&atom);
                m->atom[i] = model_atom_of(chain, residue, atom);
                for (int d = 0; d < 3; d++)
                    m->xyz[3 * i + d] = atom.pos.at(d);
            }
    tsr_model_atoms_count(m.get());
    for (int r = 0; r < m->n_residue; r++)
        if (m->ca[r] < 0)
            refuse("'%s': residue number %d of the file has no CA", path,
                   r + 1);
    return m;
}

/* Makes *out. Exceptions become a status and a message. */
template <typename T, typename Make>
tsr_status guard(const char *path, T **out, tsr_err *err, Make make_it)
{
    *out = nullptr;
    try {
        *out = make_it().release();
        return TSR_OK;
    } catch (const Refusal &refusal) {
        return tsr_fail(err, TSR_E_DATA, "%s", refusal.text.c_str());
    } catch (const std::bad_alloc &) {
        return tsr_fail(err, TSR_E_NOMEM, "out of memory reading '%s'", path);
    } catch (const std::exception &problem) {
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' cannot be read as PDB, mmCIF or sasCIF: %.500s",
                        path, one_line(problem.what()).c_str());
    } catch (...) {
        return tsr_fail(err, TSR_E_INTERNAL, "unknown failure reading '%s'",
                        path);
    }
}

/* Reads a file, compressed or not, and converts its text with `read`. */
template <typename T, typename Read>
tsr_status read_file(const char *path, T **out, tsr_err *err, Read read)
{
    char *data;
    size_t size;
    *out = nullptr;
    TSR_TRY(tsr_file_read(path, &data, &size, err));
    return guard(path, out, err, [&] {
        std::unique_ptr<char, decltype(&std::free)> owner(data, &std::free);
        const std::string text = ascii(data, size);
        owner.reset();
        return read(text);
    });
}

/* ---- SASBDB entries ---- */

template <size_t size>
void copy_word(char (&to)[size], const gemmi::cif::Column &column)
{
    std::snprintf(to, size, "%s",
                  column.length() > 0 ? one_line(column.str(0)).c_str() : "");
}

/* The first number of an item; NaN for none and for 0, which entries state for
 * unknown. */
double first_number(gemmi::cif::Block &block, const char *tag)
{
    const gemmi::cif::Column column = block.find_values(tag);
    const double x =
        column.length() > 0 ? gemmi::cif::as_number(column.at(0)) : 0.0;
    return x > 0.0 ? x : double(NAN);
}

void read_results(gemmi::cif::Document &doc, gemmi::cif::Block &main,
                  tsr_sas_entry *e)
{
    const double nm = 10.0; // Angstrom
    const std::string name = main.name.empty() ? "entry" : main.name;
    *e = tsr_sas_entry{};
    std::snprintf(e->name, sizeof e->name, "%s",
                  name.substr(0, gemmi::to_lower(name).rfind("_main")).c_str());
    copy_word(e->source, main.find_values("_sas_beam.type_of_source"));
    e->rg = nm * first_number(main, "_sas_result.rg_from_guinier");
    e->rg_pr = nm * first_number(main, "_sas_result.rg_from_pr");
    e->d_max = nm * first_number(main, "_sas_result.d_max");
    e->mass = first_number(main, "_sas_result.mw_standard");
    if (std::isnan(e->mass))
        e->mass = first_number(main, "_sas_result.experimental_mw");
    e->mass_porod = first_number(main, "_sas_result.mw_porod");
    for (gemmi::cif::Block &block : doc.blocks)
        for (const std::string &text :
             block.find_values("_sas_model_fitting_details.chi_square")) {
            const double chi2 = gemmi::cif::as_number(text);
            if (chi2 > 0.0 && e->n_fit < TSR_MOST_SAS_FITS)
                e->chi2[e->n_fit++] = chi2;
        }
}

/* Reads the rows of the first scan. Columns: q, I, and as far as they are
 * there sigma and the scan. */
void read_curve(gemmi::cif::Table &table, tsr_pool *pool, tsr_cansas *curve)
{
    const int n = int(table.length());
    *curve = tsr_cansas{};
    curve->n_data = 1;
    curve->point = static_cast<tsr_saxs_row *>(
        tsr_pool_new(pool, size_t(n), sizeof *curve->point));
    if (curve->point == nullptr)
        throw std::bad_alloc();
    for (int i = 0; i < n; i++) {
        gemmi::cif::Table::Row row = table[size_t(i)];
        if (table.has_column(3) && row[3] != table[0][3]) {
            curve->n_data += row[3] != table[size_t(i - 1)][3];
            continue;
        }
        tsr_saxs_row *point = &curve->point[curve->n++];
        point->line = i + 1;
        for (int c = 0; c < TSR_CANSAS_N; c++) {
            point->value[c] = c < 3 && table.has_column(c)
                                  ? gemmi::cif::as_number(row[c])
                                  : double(NAN);
            curve->has[c] |= std::isfinite(point->value[c]);
        }
    }
}

void read_entry(const char *path, const std::string &text, tsr_pool *pool,
                tsr_sas_entry *entry, tsr_cansas *curve)
{
    auto &unit = curve->unit[TSR_CANSAS_Q];
    gemmi::cif::Document doc =
        gemmi::cif::read_memory(text.data(), text.size(), path);
    for (gemmi::cif::Block &block : doc.blocks) {
        gemmi::cif::Table table = block.find(
            "_sas_scan_intensity.", {"momentum_transfer", "intensity",
                                     "?intensity_su_counting", "?scan_id"});
        if (!table.ok())
            continue;
        if (table.length() == 0)
            refuse("'%s', line %d: the loop of the curve has no rows", path,
                   table.loop_item->line_number);
        read_curve(table, pool, curve);
        copy_word(unit, block.find_values("_sas_scan.unit"));
        if (unit[0] == '\0')
            copy_word(unit,
                      block.find_values("_sas_scan.momentum_transfer_units"));
        read_results(doc, block, entry);
        return;
    }
    refuse("'%s' holds no curve: no data block has a loop of "
           "_sas_scan_intensity.momentum_transfer and its intensity",
           path);
}

} // namespace

extern "C" int tsr_sas_is_cif(const char *text, size_t size)
{
    return is_cif(ascii(text, std::min(size, size_t(100000)))) &&
           (std::strstr(text, "\n_") != nullptr ||
            std::strstr(text, "\nloop_") != nullptr);
}

extern "C" tsr_status tsr_sas_entry_read(const char *path, const char *text,
                                         size_t size, tsr_pool *pool,
                                         tsr_sas_entry *entry,
                                         tsr_cansas *curve, tsr_err *err)
{
    struct None {
        int *release() { return nullptr; }
    };
    int *none;
    return guard(path, &none, err, [=] {
        read_entry(path, ascii(text, size), pool, entry, curve);
        return None{};
    });
}

extern "C" tsr_status tsr_structure_read(const char *path, tsr_structure **out,
                                         tsr_err *err)
{
    return read_file(path, out, err, [=](const std::string &text) {
        return read_protein(path, text, false, nullptr);
    });
}

extern "C" tsr_status tsr_structure_read_any(const char *path,
                                             tsr_structure **out, tsr_err *err)
{
    return tsr_structure_read_symmetric(path, nullptr, out, err);
}

extern "C" tsr_status tsr_structure_read_symmetric(const char *path,
                                                   const char *group,
                                                   tsr_structure **out,
                                                   tsr_err *err)
{
    return read_file(path, out, err, [=](const std::string &text) {
        return read_protein(path, text, true, group);
    });
}

extern "C" tsr_status tsr_atoms_read(const char *path, tsr_atoms **out,
                                     tsr_err *err)
{
    return tsr_atoms_read_symmetric(path, nullptr, out, err);
}

extern "C" tsr_status tsr_atoms_read_symmetric(const char *path,
                                               const char *group,
                                               tsr_atoms **out, tsr_err *err)
{
    return read_file(path, out, err, [=](const std::string &text) {
        return read_atoms(path, text, group);
    });
}

extern "C" int tsr_symmetry_order(const char *group)
{
    static const struct {
        const char *name;
        int order;
    } cubic[] = {{"T", 12}, {"O", 24}, {"I", 60}, {"auto", 1}};
    for (const auto &one : cubic)
        if (std::strcmp(group, one.name) == 0)
            return one.order;
    char *end = nullptr;
    const long n = group[0] == 'C' || group[0] == 'D'
                       ? std::strtol(group + 1, &end, 10)
                       : 0;
    const long order = group[0] == 'C' ? n : 2 * n;
    return end != nullptr && *end == '\0' && n >= 2 && order <= TSR_MAX_COPY
               ? int(order)
               : 0;
}

extern "C" tsr_status tsr_atoms_of_arrays(const tsr_atom_arrays *from,
                                          tsr_atoms **out, tsr_err *err)
{
    const char *path = "structure";
    return guard(path, out, err, [=] {
        const gemmi::Structure checked =
            check_structure(path, structure_of(*from));
        return read_model(path, checked.models[0], 1);
    });
}

extern "C" tsr_status tsr_atoms_read_models(const char *path, tsr_atoms **out,
                                            int *n_model, double (**xyz)[3],
                                            tsr_err *err)
{
    return read_file(path, out, err, [=](const std::string &text) {
        Models all = read_models(path, text);
        *xyz =
            reinterpret_cast<double(*)[3]>(copy_out(&all.first->pool, all.xyz));
        if (*xyz == nullptr)
            throw std::bad_alloc();
        *n_model = all.n;
        return std::move(all.first);
    });
}

extern "C" tsr_status tsr_model_atoms_read(const char *path,
                                           tsr_model_atoms **out, tsr_err *err)
{
    return read_file(path, out, err, [=](const std::string &text) {
        return read_model_atoms(path, text);
    });
}

/* ---- elements ---- */

/* The form factor of the neutral atom; gemmi has get(element, charge) from 0.6
 * on, get(element) before. */
template <class Table>
static auto neutral(gemmi::El element, int) -> decltype(&Table::get(element, 0))
{
    return &Table::get(element, 0);
}

template <class Table>
static auto neutral(gemmi::El element, long) -> decltype(&Table::get(element))
{
    return &Table::get(element);
}

extern "C" double tsr_atom_form_factor(int z, double q_inv_ang)
{
    if (z < 1 || z > 98)
        return NAN;
    double s = q_inv_ang / (4 * gemmi::pi());
    return neutral<gemmi::IT92<double>>(gemmi::El(z), 0)->calculate_sf(s * s);
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

extern "C" int tsr_atoms_are_bonded(const tsr_atoms *atoms, int i, int k)
{
    const double slack = 0.4; /* over the sum of covalent radii, Angstrom */
    const tsr_file_atom &a = atoms->atom[i], &b = atoms->atom[k];
    const double d = std::hypot(a.xyz[0] - b.xyz[0], a.xyz[1] - b.xyz[1],
                                a.xyz[2] - b.xyz[2]);
    return !tsr_atom_is_metal(a.z) && !tsr_atom_is_metal(b.z) &&
           d < tsr_atom_covalent_radius(a.z) + tsr_atom_covalent_radius(b.z) +
                   slack;
}
