// §8: refreshes are counted by the login that they belong to, everything else at the token endpoint by address.
import type { ChosenLimit } from '../../endpoint/endpoint.ts';
import type { RequestBody } from '../../endpoint/message.ts';
import { isObject } from '../../platform/json.ts';
import { parseBody, type RequestParameters } from '../request/parameters.ts';
import { readAskedTokens } from './asked-tokens.ts';
import type { RecentAnswers } from './recent-answers.ts';

export function chooseTokenLimit(
  body: RequestBody,
  { findKnownId, findLogin }: Pick<RecentAnswers, 'findKnownId' | 'findLogin'>,
): ChosenLimit {
  if (!isRefresh(body)) return { group: 'token' };
  const parameters = parseIfValid(body);
  const refreshToken = parameters?.get('refresh_token');
  const clientId = parameters?.get('client_id');
  if (!parameters || refreshToken === undefined || clientId === undefined)
    return { group: 'refresh' };
  const find = () => findLogin(refreshToken, readAskedTokens(parameters, clientId));
  return { group: 'refresh', login: { knownId: findKnownId(refreshToken, clientId), find } };
}

/** Without parsing: everybody may send a body of many parts. */
function isRefresh(body: RequestBody): boolean {
  if (body.type === 'form') return /(?:^|&)grant_type=refresh_token(?:&|$)/.test(body.text);
  return isObject(body.value) && body.value.grant_type === 'refresh_token';
}

/** What is wrong with the request is said once it was counted. */
function parseIfValid(body: RequestBody): RequestParameters | undefined {
  try {
    return parseBody(body);
  } catch {
    return undefined;
  }
}
