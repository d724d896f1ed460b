// Spec §9, decisions 3: protocol versions.

/** Newest last. */
export const PROTOCOL_VERSIONS = ['0.1.0', '2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

const NEWEST = '2025-11-25';

export const isKnownVersion = (version: string): boolean => PROTOCOL_VERSIONS.includes(version);

/** What `initialize` answers: the caller's version where it is known, else the newest. */
export const negotiateVersion = (asked: string): string => (isKnownVersion(asked) ? asked : NEWEST);
