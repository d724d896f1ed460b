// Spec §9, decisions 3, MCP "Versioning": the revisions that are spoken, and in which era each is.

/** Sessions that begin with `initialize`, or requests that each bring all that is needed. */
export type Era = 'session' | 'stateless';

/** Newest first. `0.1.0` is no revision of MCP; Spec §9 lists it. */
const REVISIONS: Readonly<Record<string, Era>> = {
  '2026-07-28': 'stateless',
  '2025-11-25': 'session',
  '2025-06-18': 'session',
  '2025-03-26': 'session',
  '2024-11-05': 'session',
  '0.1.0': 'session',
};

/** The era of a revision; undefined for one that is not spoken. */
export const eraOf = (version: string): Era | undefined =>
  Object.hasOwn(REVISIONS, version) ? REVISIONS[version] : undefined;

/** Revisions of MCP that are spoken here in any era: what `server/discover` says. */
export const SUPPORTED_VERSIONS: readonly string[] = Object.keys(REVISIONS).filter((version) =>
  /^\d{4}-/.test(version),
);

/** Versions that a session may have, newest first. */
export const SESSION_VERSIONS: readonly string[] = Object.keys(REVISIONS).filter(
  (version) => eraOf(version) === 'session',
);

const [NEWEST_OF_SESSIONS = ''] = SESSION_VERSIONS;

/** What `initialize` answers: the caller's version where it is known, else the newest. */
export const negotiateVersion = (asked: string): string =>
  SESSION_VERSIONS.includes(asked) ? asked : NEWEST_OF_SESSIONS;
