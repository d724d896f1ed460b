// §4.7: whether two token requests ask for the same.
import type { RequestParameters } from '../request/parameters.ts';

/** What a client asked for. Whoever asks for anything else gets an answer of its own. */
export interface AskedTokens {
  readonly clientId: string;
  /** As they were sent, in the order of their names; without what only says who asks, and by what right. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

/** Of a code or a refresh token, and of the client: the same tokens are asked for with either. */
const RIGHTS: ReadonlySet<string> = new Set([
  'grant_type',
  'code',
  'code_verifier',
  'redirect_uri',
  'refresh_token',
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
]);

export const readAskedTokens = ({ pairs }: RequestParameters, clientId: string): AskedTokens => ({
  clientId,
  parameters: pairs
    .filter(([name, value]) => !RIGHTS.has(name) && value !== '')
    .sort(([name, value], [otherName, other]) =>
      name === otherName ? compare(value, other) : compare(name, otherName),
    ),
});

const compare = (one: string, other: string): number => Number(one > other) - Number(one < other);

export const isSameRequest = (one: AskedTokens, other: AskedTokens): boolean =>
  one.clientId === other.clientId &&
  JSON.stringify(one.parameters) === JSON.stringify(other.parameters);
