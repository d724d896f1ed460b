// RFC 6749 §2.3: authenticates clients. The error does not say which check failed, so that it reveals no client IDs; the log has
// the found and the expected value.

import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { RequestBody } from '../../http/endpoint/message.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import { ASSERTION_TYPE } from '../../http/oauth-client/client-authentication.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { truncateForLog } from '../../platform/log.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import { quote } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildAssertionKey } from '../../store/keys.ts';
import { claimOnce } from '../../store/records.ts';
import { findSigner, type ParsedToken, verifySignature } from '../auth/jws.ts';
import { createKeySet, type KeyHint, type KeySet, selectCandidates } from '../auth/key-set.ts';
import type { MachineClient, MachineClients } from '../auth/machine-clients.ts';
import { computeNotedSeconds } from '../auth/token-verifier.ts';
import { isSecretOf } from './machine-client-shape.ts';
import {
  type AssertionCredentials,
  type ClientAssertionRules,
  hasTriedBasic,
  readAssertion,
  readCredentials,
  type SecretCredentials,
} from './read-credentials.ts';

/** The part of a client that authentication needs. */
export type ProvenClient = Pick<MachineClient, 'id' | 'credentials'>;

interface AuthenticatingClients<Client extends ProvenClient> {
  /** Finds a client that the configuration file defines. */
  find(id: string): Client | undefined;
  /** Finds any other client by its metadata document, with the key that `hint` names. */
  findByDocument?(id: string, hint: KeyHint): Promise<Client | undefined>;
}

export type ClientAuthentication<Client extends ProvenClient = MachineClient> = ReturnType<
  typeof createClientAuthentication<Client>
>;

export interface AuthenticationRequest {
  /** Identifies the request: limits and endpoint share the result. */
  readonly body: RequestBody;
  readonly parameters: RequestParameters;
  /** The Authorization header. */
  readonly authorization: string | undefined;
}

export function createClientAuthentication<Client extends ProvenClient = MachineClient>(
  { store, clock }: Runtime,
  rules: ClientAssertionRules,
  keySets: ReturnType<typeof createClientKeySets>,
  clients: AuthenticatingClients<Client>,
) {
  const judged = new WeakMap<RequestBody, ReturnType<typeof judge>>();

  function checkSecret({ clientId, secret }: SecretCredentials) {
    const client = clients.find(clientId);
    const hash = client?.credentials.kind === 'secret' ? client.credentials.hash : undefined;
    if (isSecretOf(secret, hash) && client !== undefined) return { client, useUp: async () => {} };
    return failClient(clientId, {
      found: client?.credentials.kind === 'secret' ? 'another secret' : 'a secret',
      expected: describeExpected(client),
    });
  }

  async function checkAssertion({
    clientId,
    assertion: text,
    assertionType,
  }: AssertionCredentials) {
    if (assertionType !== ASSERTION_TYPE)
      failClient(clientId, {
        found: `client_assertion_type ${truncateForLog(assertionType ?? '')}`,
        expected: ASSERTION_TYPE,
      });
    const { token, clientId: sub, jti, exp } = readOrFail(text, clientId);
    if (clientId !== undefined && clientId !== sub)
      failClient(clientId, { found: `sub ${sub}`, expected: 'the client_id' });
    const client = clients.find(sub) ?? (await clients.findByDocument?.(sub, token));
    if (client === undefined || client.credentials.kind === 'secret')
      return failClient(sub, {
        found: 'an assertion',
        expected: describeExpected(client),
      });
    await checkSignature(client, token);
    const key = buildAssertionKey(hashSha256(JSON.stringify([sub, jti])));
    // A used assertion may be stolen: it does not prove its sender, and must not count for its client.
    if ((await store.get(key)) !== undefined) failUsed(sub);
    return {
      client,
      async useUp() {
        const seconds = computeNotedSeconds(exp + rules.clockToleranceSeconds, clock.now());
        if (!(await claimOnce(store, key, seconds))) failUsed(sub);
      },
    };
  }

  function readOrFail(text: string, clientId: string | undefined) {
    try {
      return readAssertion(text, clock.now(), rules);
    } catch (thrown) {
      const { found, expected } = (thrown instanceof GatewayError && thrown.failure.facts) || {};
      return failClient(clientId, { found, expected });
    }
  }

  async function checkSignature({ id, credentials }: ProvenClient, token: ParsedToken) {
    if (credentials.kind === 'keys') {
      const tried = selectCandidates(credentials.keys, token, MAX_TRIED_KEYS);
      if (findSigner(token, tried) === undefined) failSignature(id, token);
    }
    if (credentials.kind !== 'keysUrl') return;
    try {
      await verifySignature(token, keySets.get(credentials.url));
    } catch (thrown) {
      const { row, failure } = toGatewayError(thrown);
      if (row.status === 401) failSignature(id, token);
      // The key set may contain the key, but is unavailable.
      fail('client_keys_unavailable', {
        headers: { 'Retry-After': '2' },
        cause: failure.cause,
        facts: { client: id },
      });
    }
  }

  async function judge({ parameters, authorization }: AuthenticationRequest) {
    try {
      const credentials = readCredentials(parameters, authorization);
      if (credentials === undefined || credentials === 'malformed')
        return failClient(parameters.get('client_id'), {
          found: credentials === undefined ? 'no credentials' : 'malformed credentials',
          expected: 'a secret or an assertion',
        });
      return 'assertion' in credentials
        ? await checkAssertion(credentials)
        : checkSecret(credentials);
    } catch (thrown) {
      const isRefusal = thrown instanceof GatewayError && thrown.row.status === 401;
      if (!isRefusal || !hasTriedBasic(authorization)) throw thrown;
      // RFC 6749 §5.2: for a client that used the header, the response names the scheme.
      const headers = { 'WWW-Authenticate': 'Basic realm="oauth", charset="UTF-8"' };
      throw new GatewayError(thrown.key, { ...thrown.failure, details: thrown.message, headers });
    }
  }

  return {
    /**
     * Without effect. A used assertion is refused here, too: it counts for its sender, not for its client. `useUp` is to be called
     * before anything is issued: an assertion is accepted once, on all replicas together; it throws `unauthenticated_machine`, or
     * the store's error.
     *
     * @throws GatewayError `oauth_invalid_request`, `unauthenticated_machine` or `client_keys_unavailable`.
     */
    authenticate(request: AuthenticationRequest) {
      const judging = judged.get(request.body) ?? judge(request);
      judged.set(request.body, judging);
      return judging;
    },
    /** The client whose secret the request brings, if that alone identifies it; else undefined. Never throws. */
    findBySecret({ parameters, authorization }: AuthenticationRequest): Client | undefined {
      try {
        const credentials = readCredentials(parameters, authorization);
        return typeof credentials === 'object' && 'secret' in credentials
          ? checkSecret(credentials).client
          : undefined;
      } catch {
        return undefined;
      }
    },
  };
}

const describeExpected = (client: ProvenClient | undefined) => {
  if (client === undefined) return 'a client in the configuration file';
  return client.credentials.kind === 'secret' ? 'its secret' : 'an assertion by its key';
};

/** Per client: a client with thousands of keys, in its document perhaps, must not slow down others. */
const MAX_TRIED_KEYS = 16;

const failUsed = (clientId: string): never =>
  failClient(clientId, { found: 'a jti that was used', expected: 'a new one' });

const failSignature = (clientId: string, { kid }: ParsedToken): never =>
  failClient(clientId, {
    found: `a signature (kid ${quote(kid, 100)})`,
    expected: `one by one of the client's keys (of those that fit kid and alg, ${MAX_TRIED_KEYS} keys are tried)`,
  });

const failClient = (clientId: string | undefined, facts: JsonObject): never =>
  fail('unauthenticated_machine', {
    facts: { ...(clientId !== undefined && { client: truncateForLog(clientId) }), ...facts },
  });

// RFC 7517: key sets of clients that publish them. One per client, so that a slow host does not delay other clients.

export function createClientKeySets(runtime: Runtime, machineClients: MachineClients) {
  const byUrl = new Map<string, KeySet>();

  function open(url: string) {
    const keySet = createKeySet(runtime, {
      url,
      owner: {
        name: `The key set of a client (${stripUri(url)})`,
        effect: 'until it is, the client cannot log in',
        advice: 'Check its "jwksUri" in the configuration file, and the outbound network.',
      },
      maxCandidates: MAX_TRIED_KEYS,
    });
    keySet.start();
    byUrl.set(url, keySet);
    return keySet;
  }

  machineClients.onChange(() => {
    const used = new Set(
      machineClients
        .list()
        .flatMap(({ credentials }) => (credentials.kind === 'keysUrl' ? [credentials.url] : [])),
    );
    for (const [url, keySet] of byUrl) {
      if (used.has(url)) continue;
      keySet.close();
      byUrl.delete(url);
    }
  });

  return {
    get: (url: string) => byUrl.get(url) ?? open(url),
    close() {
      for (const keySet of byUrl.values()) keySet.close();
    },
  };
}
