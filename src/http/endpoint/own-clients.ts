// §19.3, §22.1: the gateway's own clients in the browser, which need no registration.

/** Distinct from the IDs of registered clients, which begin with `svc-`. */
export const PLAYGROUND_CLIENT_ID = 'postern-playground';

/** The operators' page. Its tokens are only valid for its API, so that no server behind the gateway ever receives one. */
export const OPERATORS_CLIENT_ID = 'postern-operators';

/** The page where users revoke clients' access. It gets no tokens. */
export const ACCOUNT_CLIENT_ID = 'postern-account';

export const isOwnClient = (clientId: string): boolean =>
  clientId === PLAYGROUND_CLIENT_ID || clientId === OPERATORS_CLIENT_ID;

/** The redirect URI of both. */
export const buildPlaygroundCallbackUrl = (baseUrl: string): string =>
  `${baseUrl}/playground/callback`;
