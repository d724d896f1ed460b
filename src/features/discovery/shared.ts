// Spec §4.9, §4.10: what all metadata documents have in common.

export const SCOPES = ['openid', 'profile', 'email'] as const;

/** Decisions 6. */
export const METADATA_CACHING = { 'Cache-Control': 'public, max-age=300' } as const;
