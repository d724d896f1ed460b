// §5.11: how tokens of the gateway's own begin. A prefix of its own is what scanners for leaked secrets look for.

export const ACCESS_TOKEN_PREFIX = 'pst_';
export const REFRESH_TOKEN_PREFIX = 'psr_';

/** Whether a text is meant as a token of the gateway's own, a good one or not. */
export const isOwnToken = (text: string): boolean =>
  text.startsWith(ACCESS_TOKEN_PREFIX) || text.startsWith(REFRESH_TOKEN_PREFIX);
