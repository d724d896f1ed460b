// §5.11: whom the gateway's own tokens admit. Tokens are decrypted and checked here; the step that counts the call checks whether
// the grant still exists (`UserContext.grant`).

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { fail } from '../../errors/gateway-error.ts';
import { ACCESS_TOKEN_PREFIX, isOwnToken } from '../../http/endpoint/bearer.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildGrantKey } from '../../store/keys.ts';
import { type Grant, getClientMark, noteFirstUse } from '../grants/grant.ts';
import type { OwnTokens, StoredGrant } from '../grants/grants.ts';
import {
  type AccessToken,
  hashResource,
  hashUser,
  MAX_TOKEN_LENGTH,
  unmaskScopes,
} from '../grants/token-codec.ts';
import { failToken } from './jws.ts';
import { type MachineClient, type MachineClients, mayOperate } from './machine-clients.ts';
import { describeClaims } from './token-verifier.ts';

/** A grant as this process last read it, and its user. */
interface KnownGrant extends Pick<StoredGrant, 'grant' | 'version'> {
  /** Users by the scopes of a token; most grants have only one set of scopes. */
  readonly users: Map<number, UserContext>;
  /** The client that logged in as itself, as the configuration file had it when the users were made. */
  usersOf: MachineClient | undefined;
  readonly userKey: string;
  /** True once use of this generation's tokens has been recorded. */
  isUseNoted: boolean;
}

export function createOwnTokenVerifier(
  { config, clock }: Runtime,
  { codec, grants }: OwnTokens,
  oauth: BrokerConfig,
  machineClients: MachineClients,
) {
  const { baseUrl } = config.server;
  // A grant from another provider ended when the provider was changed.
  const { issuer } = oauth.provider;
  const assertionIssuers = oauth.idJag.isEnabled ? oauth.idJag.issuers : [];
  const known = createBoundedMap<string, KnownGrant>('grants');
  const openedTokens = createBoundedMap<string, AccessToken>('openedTokens');
  const reading = createSingleFlight<string, KnownGrant>();
  const acceptsResource = createResourceCheck(baseUrl);
  /** The scopes of the token that admitted a user. */
  const scopeMasks = new WeakMap<UserContext, number>();

  /**
   * The client that logged in as itself, as in the current file. Looked up on every call: replicas load the file at different
   * times, and a removed client must be refused by each replica that knows.
   *
   * @throws GatewayError `token_revoked` if it was removed or changed.
   */
  function requireMachineClient({ grant }: KnownGrant): MachineClient | undefined {
    const mark = getClientMark(grant);
    if (mark === undefined) return undefined;
    const found = machineClients.find(grant.client.id);
    return found?.mark === mark ? found : fail('token_revoked');
  }

  function findUser(entry: KnownGrant, scopeMask: number) {
    const client = requireMachineClient(entry);
    const { users } = entry;
    // Its groups and its limit come from the current file.
    if (client !== entry.usersOf) users.clear();
    entry.usersOf = client;
    const found = users.get(scopeMask);
    if (found !== undefined) return found;
    const user = createUser(entry, scopeMask);
    users.set(scopeMask, user);
    scopeMasks.set(user, scopeMask);
    return user;
  }

  function createUser({ grant, version, usersOf }: KnownGrant, scopeMask: number): UserContext {
    const { id, user, client } = grant;
    const endsAt = grants.computeAgeEnd(grant);
    const check = { id, clientId: client.id, key: buildGrantKey(id), version, endsAt };
    const scope = unmaskScopes(grant.scopes, scopeMask).join(' ');
    // The permission to use the token was granted here: what the provider says concerns its own tokens.
    const { scp: _, ...claims } = grant.claims;
    // With an assertion from the issuer, the caller is a person, whichever client authenticated.
    if (usersOf === undefined || grant.assertion !== undefined)
      return {
        ...describeClaims(user.sub, { ...claims, scope }),
        ...(user.issuer !== issuer && { issuer: user.issuer }),
        grant: check,
      };
    const { groups, rateLimit: maxCalls } = usersOf;
    return {
      ...describeClaims(user.sub, { ...claims, groups, scope }),
      issuer: user.issuer,
      grant: { ...check, isMachine: true, maxCalls },
    };
  }

  function open(token: string, path: string): AccessToken {
    const { length } = token;
    if (isOwnToken(token) && length > MAX_TOKEN_LENGTH)
      failToken(
        `The token has ${length} bytes; those of this gateway have ${MAX_TOKEN_LENGTH} at most.`,
        { found: `${length} bytes`, expected: `at most ${MAX_TOKEN_LENGTH} bytes` },
      );
    let opened = openedTokens.get(token);
    if (opened === undefined) {
      // A token that cannot be decrypted is not cached: anybody could send more of them.
      opened = codec.readAccessToken(token) ?? failUnknown(token);
      openedTokens.set(token, opened);
    }
    const now = clock.now() / 1000;
    if (now >= opened.expiresAt) fail('expired_token', { facts: { exp: opened.expiresAt, now } });
    if (!acceptsResource(opened.resourceHashes, path)) failResource(baseUrl, path);
    return opened;
  }

  const read = (id: string) =>
    reading.run(id, async () => {
      const stored = await grants.read(id);
      if (stored === undefined || !isOfHere(stored.grant)) {
        known.delete(id);
        return fail('token_revoked');
      }
      return remember(stored);
    });

  const isOfHere = ({ user, clientMark, assertion }: Grant) =>
    assertion === undefined
      ? user.issuer === (clientMark === undefined ? issuer : baseUrl)
      : assertionIssuers.includes(user.issuer);

  function remember({ grant, version }: StoredGrant): KnownGrant {
    const entry: KnownGrant = {
      grant,
      version,
      users: new Map(),
      usersOf: undefined,
      userKey: hashUser(grant.user),
      isUseNoted: grant.issued.isUsed || grant.replaced === undefined,
    };
    known.set(grant.id, entry);
    return entry;
  }

  /** From now on, the previous refresh token is only useful to a thief. Not awaited. */
  function noteUse(id: string, entry: KnownGrant) {
    entry.isUseNoted = true;
    grants
      .update(id, (grant) => {
        const { isUsed, generation } = grant.issued;
        return isUsed || generation !== entry.grant.issued.generation
          ? undefined
          : noteFirstUse(grant);
      })
      .then(
        (stored) => stored && remember(stored),
        () => {
          entry.isUseNoted = false;
        },
      );
  }

  /** The user of a token, whose first use is noted. @throws GatewayError */
  function requireUser(opened: AccessToken, entry: KnownGrant, path: string): UserContext {
    // No two grants share an ID; if they did, no user must be mistaken for another.
    if (opened.userKey !== entry.userKey) failUnknown('');
    if (ADMIN.test(path)) {
      // Nobody logged in: the client claims that an operator wants it, and no page shows the operator what it does.
      if (entry.grant.assertion !== undefined)
        failToken(
          'The token was given for an assertion (ID-JAG), which does not serve operators. Log in as an operator.',
          { found: 'a token given for an assertion', expected: 'a token of a login' },
          'invalid_audience',
        );
      const client = requireMachineClient(entry);
      if (client !== undefined && !mayOperate(client, baseUrl)) failResource(baseUrl, path);
    }
    if (!entry.isUseNoted && opened.generation === entry.grant.issued.generation)
      noteUse(opened.grantId, entry);
    return findUser(entry, opened.scopeMask);
  }

  return {
    /**
     * For a call at `path`. A promise only if the grant has to be read first: `beforeFetch` is called then, and an error from it
     * ends the check.
     *
     * @throws GatewayError with a reason of §7.1, or the store's error, thrown at once or through the promise.
     */
    verify(token: string, beforeFetch: (() => Promise<void>) | undefined, path: string) {
      const opened = open(token, path);
      const entry = known.get(opened.grantId);
      // A token of a pair that is new to this process: its use has to be recorded.
      if (entry !== undefined && opened.generation <= entry.grant.issued.generation)
        return requireUser(opened, entry, path);
      return (async () => {
        await beforeFetch?.();
        return requireUser(opened, await read(opened.grantId), path);
      })();
    },
    /** The same user, for a grant that has changed. @throws GatewayError `token_revoked`. */
    async reload(user: UserContext) {
      if (user.grant === undefined) return user;
      const entry = await read(user.grant.id);
      return findUser(entry, scopeMasks.get(user) ?? 0);
    },
  };
}

// RFC 8707: what a token is for. One for /mcp or for the gateway itself serves every path; one for the path of a server, or
// for /admin, only that.

function createResourceCheck(baseUrl: string) {
  const ofAll = new Set([baseUrl, `${baseUrl}/mcp`].flatMap(listEquivalents).map(hashResource));
  const ofPath = createBoundedMap<string, readonly string[]>('tokenPaths');

  function listHashes(path: string) {
    const found = ofPath.get(path);
    if (found !== undefined) return found;
    const resource = ADMIN.test(path) ? '/admin' : path;
    const hashes = listEquivalents(`${baseUrl}${resource}`).map(hashResource);
    ofPath.set(path, hashes);
    return hashes;
  }

  return (hashes: readonly string[], path: string) =>
    hashes.some((hash) => ofAll.has(hash) || listHashes(path).includes(hash));
}

/** Everything that operators call is one resource. */
const ADMIN = /^\/admin(\/|$)/;

/** With and without a trailing slash. */
const listEquivalents = (url: string): readonly string[] => [url, `${url}/`];

/** `postern doctor` recognizes gateways that issue their own tokens by these two sentences. */
export const UNKNOWN_TOKEN = 'The token was changed on its way, or another gateway issued it.';
export const FOREIGN_TOKEN =
  'The token was not issued by this gateway. Log in by way of it: its own tokens begin with pst_.';

function failUnknown(token: string): never {
  if (token !== '' && isOwnToken(token) && !token.startsWith(ACCESS_TOKEN_PREFIX))
    return failToken('This is a refresh token. Send the access token.', {
      found: 'a refresh token',
      expected: 'an access token',
    });
  return failToken(token === '' || isOwnToken(token) ? UNKNOWN_TOKEN : FOREIGN_TOKEN, {
    found: 'an unknown token',
    expected: 'an access token of this gateway',
  });
}

const failResource = (baseUrl: string, path: string): never =>
  failToken(
    `The token was issued for a different resource of this gateway, not for ${baseUrl}${path}. Request a token with this address, or ${baseUrl}/mcp, as the resource.`,
    { found: 'another resource', expected: `${baseUrl}${path}` },
    'invalid_audience',
  );
