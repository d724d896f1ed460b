// §18.6: what each kind of `auth` comes to.
import type { UpstreamCaller } from '../upstream.ts';

/** By lower-case name. */
export type CredentialHeaders = Readonly<Record<string, string>>;

/**
 * Headers that go with a request on this caller's behalf. Secrets.
 *
 * @throws CredentialError where the caller's request must not be sent.
 */
export type GetHeaders = (caller: UpstreamCaller) => CredentialHeaders | Promise<CredentialHeaders>;

/** Undefined for who has no token: the gateway itself, and callers without authentication. */
export type GetToken = (caller: UpstreamCaller) => string | undefined | Promise<string | undefined>;
