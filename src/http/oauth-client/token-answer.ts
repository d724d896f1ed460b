// RFC 6749 §5: parses responses of token endpoints defensively: many deviate from the RFC.

import { isScopeToken } from '../../config/rules.ts';
import { removeUnseen } from '../../platform/invisible.ts';
import {
  decodeUtf8,
  isObject,
  isStringArray,
  type JsonObject,
  parseObject,
} from '../../platform/json.ts';
import { shorten } from '../../platform/text.ts';
import { type FormPair, redactSent } from './client-authentication.ts';

export interface ServerTokens {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** Undefined if the token does not expire, or the response does not say when. */
  readonly expiresInSeconds: number | undefined;
  /** Undefined if the response does not say, so they are the requested ones (RFC 6749 §5.1). */
  readonly scopes: readonly string[] | undefined;
  /** The account's name, for display only; no decision depends on it. */
  readonly account: string | undefined;
  /** The account's ID at the server, only to distinguish accounts. */
  readonly subject: string | undefined;
}

export type TokenAnswer =
  | { readonly kind: 'issued'; readonly tokens: ServerTokens }
  /** The code or refresh token is invalid. */
  | { readonly kind: 'invalid_grant'; readonly said: string }
  | { readonly kind: 'invalid_client'; readonly said: string }
  /** The state of the code or refresh token is unknown. */
  | { readonly kind: 'failed'; readonly said: string };

/** A response of a token endpoint. */
export interface TokenEndpointAnswer {
  readonly status: number;
  /** Location of a redirect, which is not followed. */
  readonly location: string | undefined;
  readonly body: Buffer;
}

/** `said` is `answered 400 invalid_grant`; it never contains what was sent. */
export function readServerTokens(
  { status, body, location }: TokenEndpointAnswer,
  sent: readonly FormPair[],
): TokenAnswer {
  const members = parseObject(body) ?? parseForm(body);
  const error = readError(members);
  if (status === 200 && error === undefined) {
    const tokens = members ? readTokens(members) : 'with what is no token answer';
    return typeof tokens === 'object'
      ? { kind: 'issued', tokens }
      : { kind: 'failed', said: `answered 200 ${tokens}` };
  }
  const said = `answered ${status}${describeError(error, members, sent)}`;
  if (location !== undefined) return { kind: 'failed', said: `${said}, a redirect` };
  if (error !== undefined && INVALID_GRANT.has(error) && status < 500)
    return { kind: 'invalid_grant', said };
  const isClient = error === undefined ? status === 401 : INVALID_CLIENT.has(error);
  if (isClient && status < 500) return { kind: 'invalid_client', said };
  return { kind: 'failed', said };
}

/** RFC 6749 §5.2, and the equivalents of GitHub and Slack, which come with status 200. */
const INVALID_GRANT = new Set([
  'invalid_grant',
  'invalid_refresh_token',
  'bad_refresh_token',
  'token_expired',
  'bad_verification_code',
  'invalid_code',
  'code_already_used',
]);

/** The same for the client. */
const INVALID_CLIENT = new Set([
  'invalid_client',
  'incorrect_client_credentials',
  'bad_client_secret',
  'invalid_client_id',
]);

/** GitHub responds in this format unless JSON is requested, and some servers always do. */
function parseForm(body: Buffer): JsonObject | undefined {
  const text = decodeUtf8(body);
  if (text === undefined || !/^[\w.~*%+-]+=/.test(text)) return undefined;
  return Object.fromEntries(new URLSearchParams(text));
}

function readError(members: JsonObject | undefined) {
  if (members === undefined) return undefined;
  const { error, ok } = members;
  const code = isObject(error) ? (error.code ?? error.type) : error;
  // With a token, it is not a failure: some servers always send an empty or null error.
  if (typeof code === 'string' && code !== '' && findHolder(members) === undefined)
    return /^[\w.-]{1,60}$/.test(code) ? code : 'an error';
  return ok === false ? 'an error' : undefined;
}

function describeError(
  error: string | undefined,
  members: JsonObject | undefined,
  sent: readonly FormPair[],
) {
  if (error === undefined) return '';
  const description = members?.error_description ?? members?.message;
  if (typeof description !== 'string' || description === '') return ` ${redactSent(error, sent)}`;
  const text = toOneLine(redactSent(description.slice(0, 2000), sent), 200);
  return ` ${redactSent(error, sent)}: ${text.replace(/[.\s]+$/, '')}`;
}

/** Puts the text on one line, without invisible characters. */
export const toOneLine = (text: string, max: number): string =>
  shorten(removeUnseen(text.replace(/\s+/g, ' ')).trim(), max);

// Issued tokens.

const MAX_TOKEN = 16_384;
/** RFC 6750 §2.1: the characters allowed in the header; others could start another header. */
const TOKEN = /^[\x21-\x7e]+$/;
/** These token types require a proof, which the gateway does not have. */
const OTHER_TYPES = /^(dpop|pop|mac)$/i;
const ONE_YEAR_SECONDS = 31_536_000;

/** Returns the tokens, or the reason why the response contains none. */
function readTokens(members: JsonObject): ServerTokens | string {
  const holder = findHolder(members);
  if (holder === undefined) return 'without an access token';
  const { access_token: accessToken, refresh_token: refreshToken, token_type: type } = holder;
  if (!isToken(accessToken))
    return `with an access token that is no text of at most ${MAX_TOKEN} visible characters`;
  if (typeof type === 'string' && OTHER_TYPES.test(type))
    return `with a token of the type ${type}, which needs proofs that this gateway does not make`;
  if (refreshToken != null && refreshToken !== '' && !isToken(refreshToken))
    return `with a refresh token that is no text of at most ${MAX_TOKEN} visible characters`;
  return {
    accessToken,
    refreshToken: isToken(refreshToken) ? refreshToken : undefined,
    expiresInSeconds: readSeconds(holder.expires_in),
    scopes: readScopes(holder.scope),
    ...readAccount(members.id_token),
  };
}

const isToken = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_TOKEN && TOKEN.test(value);

/** Slack nests the user's token; at the top level is the bot's, if any. */
function findHolder(members: JsonObject) {
  if (members.access_token !== undefined) return members;
  const { authed_user: user } = members;
  return isObject(user) && user.access_token !== undefined ? user : undefined;
}

/**
 * Some servers write numbers as text. Anything that is not a duration, and the zero of tokens without expiry, counts as unknown.
 */
function readSeconds(value: unknown) {
  const seconds = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds <= 0) return undefined;
  return Math.min(Math.floor(seconds), ONE_YEAR_SECONDS);
}

/** GitHub and Slack separate scopes by commas, and some servers send an array. */
function readScopes(value: unknown) {
  const words = typeof value === 'string' ? value.split(/[\s,]+/) : value;
  if (!isStringArray(words)) return undefined;
  const scopes = cleanScopes(words);
  return scopes.length === 0 ? undefined : scopes;
}

const MAX_SCOPE = 200;
const MAX_SCOPES = 100;
/** Maximum for all scopes together: they appear in URLs, and in text for users and models. */
const MAX_SCOPE_CHARACTERS = 2000;

/** RFC 6749 §3.3: keeps well-formed scopes, up to the maximum length. */
export function cleanScopes(scopes: readonly string[]): readonly string[] {
  let characters = 0;
  return scopes
    .filter((word) => isScopeToken(word) && word.length <= MAX_SCOPE)
    .slice(0, MAX_SCOPES)
    .filter((scope) => {
      characters += scope.length + 1;
      return characters <= MAX_SCOPE_CHARACTERS;
    });
}

/**
 * OpenID Connect Core §5.1 and §3.1.3.7: the ID token came from the token endpoint itself, over TLS, and is only displayed, so
 * its signature is not verified.
 */
function readAccount(idToken: unknown) {
  const claims =
    typeof idToken === 'string' && idToken.length <= 2 * MAX_TOKEN
      ? readUnverifiedClaims(idToken)
      : undefined;
  const [account] = ['email', 'preferred_username', 'name', 'sub'].flatMap((name) => {
    const value = claims?.[name];
    return (typeof value === 'string' && toOneLine(value, 200)) || [];
  });
  const { sub } = claims ?? {};
  return { account, subject: typeof sub === 'string' && sub !== '' ? sub : undefined };
}

/** Decodes the claims of a JWT, if possible, without any verification. */
export const readUnverifiedClaims = (token: string): JsonObject | undefined =>
  parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url'));
