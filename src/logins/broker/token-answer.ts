// RFC 6749 §5.1: what the provider's token endpoint answered, member by member. What cannot be used is named, for whoever has
// to have it mended.
import { catalogue } from '../../errors/catalogue.ts';
import { fail, type GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { ProviderResponse } from '../../http/oauth-client/provider-api.ts';
import { parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { ProviderTokens } from '../grants/grant.ts';
import type { ProviderTokenResponse } from '../provider/provider-parameters.ts';

/** What the provider answered: its tokens are good, whoever they turn out to be of. */
export interface ProviderAnswer {
  readonly answer: ProviderTokenResponse;
  readonly tokens: ProviderTokens;
  /** Why nothing can be done with it. Its refresh token is good all the same, and the one before may be worthless. */
  readonly problem: GatewayError | undefined;
}

/** `askedAt` in epoch milliseconds. @throws GatewayError `unusable_provider_answer` where there is nothing to read. */
export function readTokenAnswer(
  { body }: ProviderResponse,
  issuer: string,
  askedAt: number,
): ProviderAnswer {
  const answer =
    parseObject(body) ??
    failUnusableAnswer(issuer, { member: 'body', found: undefined, expected: 'a JSON object' });
  const unusable = MEMBERS.find(({ name, isGood }) => !isGood(answer[name]));
  const seconds = Number(answer.expires_in);
  return {
    answer,
    tokens: {
      accessToken: readText(answer.access_token),
      expiresAt: seconds > 0 ? askedAt + seconds * 1000 : undefined,
      refreshToken: readText(answer.refresh_token),
    },
    problem: unusable && describeProblem(unusable, answer[unusable.name], issuer),
  };
}

interface Member {
  readonly name: string;
  readonly isGood: (found: unknown) => boolean;
  readonly expected: string;
}

const isAbsent = (found: unknown): boolean => found === undefined || found === null || found === '';

const isText = (found: unknown): boolean => typeof found === 'string' && found !== '';

/** Some write numbers as text. */
const isSeconds = (found: unknown): boolean =>
  (typeof found === 'number' && Number.isFinite(found)) ||
  (typeof found === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(found));

const MEMBERS: readonly Member[] = [
  { name: 'access_token', isGood: isText, expected: 'a text' },
  {
    name: 'expires_in',
    isGood: (found) => isAbsent(found) || isSeconds(found),
    expected: 'a number of seconds',
  },
  {
    name: 'refresh_token',
    isGood: (found) => isAbsent(found) || isText(found),
    expected: 'a text',
  },
  { name: 'id_token', isGood: (found) => isAbsent(found) || isText(found), expected: 'a text' },
];

const readText = (found: unknown): string | undefined =>
  typeof found === 'string' && found !== '' ? found : undefined;

function describeProblem(
  { name: member, expected }: Member,
  found: unknown,
  issuer: string,
): GatewayError {
  // Of a token never what it is.
  const shown = member === 'expires_in' || found === undefined ? found : `a ${typeof found}`;
  try {
    return failUnusableAnswer(issuer, { member, found: shown, expected });
  } catch (error) {
    return toGatewayError(error);
  }
}

interface FoundInAnswer {
  readonly member: string;
  readonly found: unknown;
  readonly expected: string;
}

/** @throws GatewayError `unusable_provider_answer`. */
export function failUnusableAnswer(
  issuer: string,
  { member, found, expected }: FoundInAnswer,
): never {
  const what = found === undefined ? 'is missing' : `is ${quote(found)}`;
  return fail('unusable_provider_answer', {
    details: `${catalogue.unusable_provider_answer.details} Of the answer of ${issuer}, ${member} ${what}; it must be ${expected}.`,
    facts: { member, found: quote(found), expected },
  });
}
