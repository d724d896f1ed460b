// §19.3, §22.1: the gateway's own clients in the browser, which need no registration.

/** No registered client has such an ID: theirs begin with `svc-`. */
export const PLAYGROUND_CLIENT_ID = 'postern-playground';

/** The operators' page. Its tokens are for its API alone, so that no server behind the gateway is ever sent one. */
export const OPERATORS_CLIENT_ID = 'postern-operators';

/** The page on which users end what clients may do for them. It gets no tokens. */
export const ACCOUNT_CLIENT_ID = 'postern-account';

export const isOwnClient = (clientId: string): boolean =>
  clientId === PLAYGROUND_CLIENT_ID || clientId === OPERATORS_CLIENT_ID;

/** The one redirect URI of both. */
export const buildPlaygroundCallbackUrl = (baseUrl: string): string =>
  `${baseUrl}/playground/callback`;
