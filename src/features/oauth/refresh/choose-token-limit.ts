// §8: refreshes are counted by the login that they belong to, everything else at the token endpoint by address.
import type { ChosenLimit } from '../../../core/endpoint.ts';
import { isObject } from '../../../core/json.ts';
import type { RequestBody } from '../../../core/message.ts';

/** Undefined for a refresh token that is not known to be this client's. */
export type FindGrantId = (refreshToken: string, clientId: string) => Promise<string | undefined>;

export function chooseTokenLimit(body: RequestBody, findGrantId: FindGrantId): ChosenLimit {
  const read = createMemberReader(body);
  if (read('grant_type') !== 'refresh_token') return { group: 'token' };
  const refreshToken = read('refresh_token');
  const clientId = read('client_id');
  if (refreshToken === undefined || clientId === undefined) return { group: 'refresh' };
  return { group: 'refresh', findGrantId: () => findGrantId(refreshToken, clientId) };
}

/** Whether the request is valid is judged once it was counted. */
function createMemberReader(body: RequestBody): (name: string) => string | undefined {
  if (body.type === 'form') {
    const parameters = new URLSearchParams(body.text);
    return (name) => parameters.get(name) ?? undefined;
  }
  const members = isObject(body.value) ? body.value : {};
  return (name) => {
    const value = members[name];
    return typeof value === 'string' ? value : undefined;
  };
}
