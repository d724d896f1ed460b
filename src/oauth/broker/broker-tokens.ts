// What of broker mode depends on whose tokens clients get: those of the provider, or the gateway's own.
import type { PublicEndpoint } from '../../endpoint/endpoint.ts';
import type { PendingReply, RequestBody } from '../../endpoint/message.ts';
import type { RecentAnswers } from '../refresh/recent-answers.ts';
import type { FinishLogin } from './callback.ts';
import type { ReadAsked } from './redirect-to-provider.ts';

export interface BrokerTokens {
  readonly logins: Pick<RecentAnswers, 'findKnownId' | 'findLogin'>;
  /** Where grants are ended: by users at their page, and by the provider. */
  readonly grantEndpoints: readonly PublicEndpoint[];
  readonly readAsked: ReadAsked;
  readonly finish: FinishLogin;
  readonly token: (body: RequestBody) => Promise<PendingReply>;
  readonly revoke: (body: RequestBody) => Promise<PendingReply>;
}
