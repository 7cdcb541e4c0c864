// Names of the positions in Python code that paths have shown, "file:line@function".
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "context/python/python_path.h"

namespace proton {

/// Sets the name of a site: empty for a frame that paths do not show, kPathStart for one that paths
/// start below. False if it was never named. [any thread, with or without the GIL]
bool find_site_name(const Site &site, std::string &name);
/// Names the sites that are new and takes a reference to their code objects, so that no other code
/// object gets their addresses. The sites belong to live frames. May run Python code. [GIL held]
void name_sites(std::span<const Site> sites);
/// Drops all names and references. May run Python code. [GIL held]
void forget_site_names() noexcept;
/// How often names were dropped. Sites that were read before the latest drop mean nothing.
uint32_t site_generation() noexcept;

} // namespace proton
