// What of broker mode depends on whose tokens clients get: those of the provider, or the gateway's own.
import type { Endpoint, JudgedRequest, LoginSearch } from '../../endpoint/endpoint.ts';
import type { RequestBody } from '../../endpoint/message.ts';
import type { LoginIndex } from '../refresh/recent-answers.ts';
import type { FinishLogin } from './callback.ts';
import type { ReadAsked } from './redirect-to-provider.ts';

export type FindMachineLogin = (
  body: RequestBody,
  authorization: string | undefined,
) => LoginSearch | undefined;

export interface BrokerTokens {
  readonly logins: LoginIndex;
  /** The gateway's own pages for users, and where the provider ends grants. */
  readonly ownEndpoints: readonly Endpoint[];
  readonly readAsked: ReadAsked;
  readonly finish: FinishLogin;
  /** `authorization` is the header, by which a client may authenticate. */
  readonly token: (body: RequestBody, authorization: string | undefined) => Promise<JudgedRequest>;
  readonly revoke: (body: RequestBody, authorization: string | undefined) => Promise<JudgedRequest>;
  /** How a request of a client that logs in as itself is counted; undefined where there are none. */
  readonly findMachineLogin?: FindMachineLogin;
}
