/* Between gemmi's parsers and the files of src/molecule and src/maps that take what they need from
 * a structure. C++; no exception leaves tsr_gemmi::read_file. */
#ifndef TSR_MOLECULE_GEMMI_READ_HH
#define TSR_MOLECULE_GEMMI_READ_HH

extern "C" {
#include "core/status.h"
#include "molecule/parent.h"
}

#include <gemmi/model.hpp>

#include <functional>
#include <string>

namespace tsr_gemmi
{

/* A refusal on its way to the caller's tsr_err. */
struct Refusal {
    tsr_status status;
    std::string text;
};

/* Throws a Refusal with TSR_E_DATA. */
[[noreturn]] void refuse(const char *format, ...) TSR_PRINTF(1, 2);

std::string upper(std::string text);
bool has_atom(const gemmi::Residue &residue, const char *name);
bool is_hydrogen(const gemmi::Atom &atom);

/* The alternate location of a residue whose atoms have the largest occupancy in
 * the mean, of equals the first; '\0' where it has none. */
char main_altloc(const gemmi::Residue &residue);

/* One of the 20 that a residue is, or is a modification or a protonation state
 * of; nullptr: none. */
const tsr_parent *find_parent(const gemmi::Residue &residue);

bool is_water(const gemmi::Residue &residue);

/* "LYS A:12" */
std::string name_of(const std::string &chain, const gemmi::Residue &residue);

/* Refuses what cannot be a molecule, whatever the command: atoms that are far
 * away or nowhere, residues of which no frame can be made, copies in one place,
 * nm. Waters are not looked at. */
void check_model(const char *path, const gemmi::Model &model);

/* RNA, DNA, and what is bonded to these as one of them, which parse flags. */
const char nucleotide_flag = 'n';
bool is_nucleotide(const gemmi::Residue &residue);

/* PDB or mmCIF, as the text says; the first model is [0]. A blank chain id is
 * now the first letter that is free. n_model: of the file. Refuses a text
 * without atoms. */
gemmi::Structure parse(const char *path, const std::string &text, int &n_model);

/* Gives copies of a molecule under one chain id ids of their own, in text as
 * tsr_pdb_first_model keeps it. Returns the new ones, "B C D"; "" where there
 * are none. */
std::string split_copies(char *text, size_t size);

/* What split_copies returned stands in its `info` under this name. */
extern const char *const copies_info;

/* Reads a file, gzipped or not, and calls `read` with its text in ASCII; turns
 * what it throws into a status and a message. */
tsr_status read_file(const char *path,
                     const std::function<void(const std::string &)> &read,
                     tsr_err *err);

} // namespace tsr_gemmi

#endif
