/* Copies of a molecule under one chain id, as biological assemblies and older
 * programs have them: each after the first gets an id of its own.
 *
 * Along a chain id a copy begins where the number of a residue comes again. So
 * that nothing is taken for a copy that is none, all residues that it shares
 * with the copy before have the same names, it has ten residues or more, and no
 * more than half of them lie where those of the copy before do (models without
 * MODEL records). Ligands and ions that stand behind a chain follow in the
 * order of their occurrence. */
#include "molecule/gemmi_read.hh"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace tsr_gemmi
{

namespace
{

const size_t record = 81; /* of kept text: 80 columns and a newline */
const int least = 10;     /* residues of a copy */
const double near_ang = 3.0;

/* Consecutive atoms of one residue. */
struct Run {
    char *line;
    int n;
    bool is_polymer;
    double x[3]; /* of CA or C1' */
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

/* A second ion of one number is an ion of its own. */
bool is_repeated_ion(const Run &run, const char *line)
{
    return run.n == 1 && !run.is_polymer && line[16] == run.line[16] &&
           atom_of(run.line) == atom_of(line);
}

void note_place(Run &run, const char *line)
{
    std::string atom = atom_of(line);
    bool is_place = atom == " CA " || atom == " C1'" || atom == " C1*";
    if (!is_place || std::strncmp(line, "ATOM", 4) != 0)
        return;
    run.is_polymer = true;
    for (int k = 0; k < 3; k++)
        run.x[k] = std::atof(std::string(line + 30 + 8 * k, 8).c_str());
}

/* Runs by chain id. */
std::map<char, std::vector<Run>> find_runs(char *text, size_t size)
{
    std::map<char, std::vector<Run>> runs;
    for (char *line = text; line < text + size;) {
        if (std::strncmp(line, "TER", 3) == 0) {
            line = std::strchr(line, '\n') + 1;
            continue;
        }
        std::vector<Run> &of = runs[line[21]];
        if (of.empty() || !is_same_run(of.back(), line) ||
            is_repeated_ion(of.back(), line))
            of.push_back(Run{line, 0, false, {0.0, 0.0, 0.0}, 0});
        of.back().n++;
        note_place(of.back(), line);
        line += record;
    }
    return runs;
}

bool is_copy(const Copy &first, const Copy &other)
{
    int n_near = 0, n_same = 0;
    for (const auto &one : other) {
        auto twin = first.find(one.first);
        if (twin == first.end())
            continue;
        if (twin->second->name() != one.second->name())
            return false;
        const double *a = twin->second->x, *b = one.second->x;
        n_same++;
        n_near += std::hypot(std::hypot(a[0] - b[0], a[1] - b[1]),
                             a[2] - b[2]) < near_ang;
    }
    return int(other.size()) >= least && 2 * n_same > int(other.size()) &&
           2 * n_near <= n_same;
}

/* HETATM records: within a chain, as selenomethionine, of the same copy as what
 * is on both sides; the rest by how often it was there before. */
void place_others(std::vector<Run> &runs, int n_copy)
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

/* Numbers the copies of one chain id; returns how many, 1 where they are none.
 */
int number_copies(std::vector<Run> &runs)
{
    std::vector<Copy> copies(1);
    for (Run &run : runs) {
        if (!run.is_polymer)
            continue;
        /* an alternate residue of the same place follows it */
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
    place_others(runs, int(copies.size()));
    return int(copies.size());
}

char free_id(const std::map<char, std::vector<Run>> &runs,
             const std::string &taken)
{
    for (char c : std::string("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789"))
        if (runs.count(c) == 0 && taken.find(c) == std::string::npos)
            return c;
    return '\0';
}

} // namespace

std::string split_copies(char *text, size_t size)
{
    std::map<char, std::vector<Run>> all = find_runs(text, size);
    std::string told, taken;
    for (auto &one : all) {
        int n = number_copies(one.second);
        std::string ids(1, one.first);
        while (int(ids.size()) < n) {
            char id = free_id(all, taken);
            if (id == '\0')
                return told;
            ids += id;
            taken += id;
        }
        for (const Run &run : one.second)
            for (int k = 0; n > 1 && k < run.n; k++)
                run.line[size_t(k) * record + 21] = ids[size_t(run.copy)];
        for (int k = 1; k < n; k++)
            told += std::string(told.empty() ? "" : " ") + ids[size_t(k)];
    }
    return told;
}

} // namespace tsr_gemmi
