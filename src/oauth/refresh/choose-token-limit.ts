// §8: refreshes are counted by the login that they belong to, everything else at the token endpoint by address.
import type { ChosenLimit } from '../../endpoint/endpoint.ts';
import type { RequestBody } from '../../endpoint/message.ts';
import { readAskedFacts } from '../request/login-facts.ts';
import { parseBody, type RequestParameters } from '../request/parameters.ts';
import { readAskedTokens } from './asked-tokens.ts';
import type { RecentAnswers } from './recent-answers.ts';

export function chooseTokenLimit(
  body: RequestBody,
  { findKnownId, findLogin }: Pick<RecentAnswers, 'findKnownId' | 'findLogin'>,
): ChosenLimit {
  if (readAskedFacts(body).grant !== 'refresh_token') return { group: 'token' };
  const parameters = parseIfValid(body);
  const refreshToken = parameters?.get('refresh_token');
  const clientId = parameters?.get('client_id');
  if (!parameters || refreshToken === undefined || clientId === undefined)
    return { group: 'refresh' };
  const find = () => findLogin(refreshToken, readAskedTokens(parameters, clientId));
  return { group: 'refresh', login: { knownId: findKnownId(refreshToken, clientId), find } };
}

/** What is wrong with the request is said once it was counted. */
function parseIfValid(body: RequestBody): RequestParameters | undefined {
  try {
    return parseBody(body);
  } catch {
    return undefined;
  }
}
