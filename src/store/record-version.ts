// Records say in which shape they are, so that replicas of two minor versions work side by side
// (§16). 0.1.0 wrote no version, and its records have the shape of version 1. Whoever adds a
// member that older replicas may ignore leaves the version as it is.

export const RECORD_VERSION = 1;

/** @throws Error for a record of a later version: what it means is not known here. */
export function checkRecordVersion(version: unknown, record: string): void {
  if (version === undefined || Number(version) <= RECORD_VERSION) return;
  throw new Error(`${record} was written by a later version of this service (${version})`);
}
