// §19.3: the gateway's own client in the browser, which needs no registration.

/** No registered client has it: theirs begin with `svc-`. */
export const PLAYGROUND_CLIENT_ID = 'postern-playground';

/** Its one redirect URI. */
export const buildPlaygroundCallbackUrl = (baseUrl: string): string =>
  `${baseUrl}/playground/callback`;
