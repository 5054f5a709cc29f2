// What NCCL's lines, flight recorders' dumps and RAS reports add to the report on logs: a section each, and a cause where the logs have
// none, or only a symptom (a timeout, victims).
#pragma once

#include <string>
#include <vector>

#include "diagnosis/hang/flight_files.h"
#include "diagnosis/hang/ras.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {

enum class EvidenceKind { kLog, kFlightRecorder, kRas };
// By the beginning of a file; what cannot be read is taken for a log.
EvidenceKind kind_of_file(const std::string& path);

void add_nccl(LogVerdict& verdict, const logs::NcclTopology& nccl);
void add_flight_records(LogVerdict& verdict, const FlightDumps& dumps);
// readings: of one job, in the order of time; of several the last two are compared.
void add_ras(LogVerdict& verdict, const std::vector<RasReport>& readings);

}  // namespace phalanx::diagnosis
