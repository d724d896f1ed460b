// §24.3: a call to a server that the user has not logged in to leads to the login: a client that can open pages is asked to, and
// the call continues when the user has logged in; any other client gets a link to show.

import { randomUUID } from 'node:crypto';
import { fail } from '../../errors/gateway-error.ts';
import { askToOpen, createPageQuestion, NO_ANSWER } from '../../mcp/calls/client-answers.ts';
import type { RawResult, RelayedClient } from '../../mcp/catalog/catalog.ts';
import type { ConnectCall, ConnectUser, Doors } from '../../mcp/upstream/connection-ports.ts';
import {
  type ConnectionRequest,
  type ConnectionRequests,
  nameConnectionOwner,
} from '../../mcp/upstream/connections.ts';
import { CallRefusedError, type ToFailedResult } from '../../mcp/upstream/failures.ts';
import {
  bindCaller,
  ConnectionNeeded,
  CredentialError,
  GATEWAY_CALLER,
  isCallerOf,
  type LoginAccess,
  type Upstream,
  type UpstreamCaller,
  type UpstreamListener,
  type UpstreamLogins,
} from '../../mcp/upstream/upstream.ts';
import { wrapUpstream } from '../../mcp/upstream/wrap-upstream.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { isObject } from '../../platform/json.ts';
import { type Logins, toLoginError } from './logins.ts';

/** `requests` is undefined if users cannot connect. */
export function createDoors(baseUrl: string, requests: ConnectionRequests | undefined): Doors {
  return {
    async pass(needed, { upstream, caller }, { relay }, mayAsk) {
      const server = upstream.config.name;
      const owner = upstream.logins?.findOwner(caller);
      if (requests === undefined || owner === undefined) throw needed;
      const need = describeNeed(server, needed, owner === 'shared');
      if (owner === 'shared')
        throw new CallRefusedError(
          `${need} All users share one connection, which an operator of this service has to make at ${baseUrl}/connections/${server}. Nothing was done. Tell the user, and call again once it is connected.`,
        );

      const answer = findDoorAnswer(relay);
      if (answer !== undefined && mayAsk) {
        if (answer.server !== server) throw new CallRefusedError(CALL_AGAIN);
        checkAccepted(server, answer.response);
        return wait(requests, answer.id, { owner, server }, relay);
      }

      const { id, url } = await requests
        .create({ owner, server, scopes: needed.scopes })
        .catch((cause: unknown) => fail('internal_error', { cause }));
      if (!mayAsk || caller.capabilities.elicitationUrl !== true)
        throw new CallRefusedError(
          `${need} Nothing has been done yet. Show the user this link, which works only for this user, for 10 minutes: ${url} When the user has connected, call again.`,
        );
      const elicitationId = randomUUID();
      const question = createPageQuestion({
        elicitationId,
        url,
        message: `${need} Connect your account to continue.`,
      });
      if (relay.era === 'stateless')
        return relay.requireInput({ [KEY]: question }, { server, [KEY]: id });
      checkAccepted(server, await askToOpen(relay, question));
      await wait(requests, id, { owner, server }, relay);
      relay.completeElicitation(elicitationId);
    },
    withoutAnswer: (client) =>
      client.era === 'stateless' && findDoorAnswer(client) !== undefined
        ? { ...client, answered: undefined }
        : client,
  };
}

/** @throws CallRefusedError */
function checkAccepted(server: string, response: unknown) {
  const { action } = isObject(response) ? response : NO_ANSWER;
  if (action === 'accept') return;
  const who = action === 'decline' ? 'The user declined to log in' : 'The user did not log in';
  throw new CallRefusedError(
    `${who} to ${server}, so nothing was done. Do not call again unless the user asks you to.`,
  );
}

/** @throws CallRefusedError */
async function wait(
  requests: ConnectionRequests,
  id: string,
  link: Pick<ConnectionRequest, 'owner' | 'server'>,
  relay: RelayedClient,
) {
  const outcome = await requests.wait(id, link, relay.signal);
  if (outcome === 'connected') return;
  // The client is no longer waiting.
  if (relay.signal.aborted) fail('request_cancelled');
  throw new CallRefusedError(
    outcome === 'declined'
      ? `The user declined to connect ${link.server}, so nothing was done. Do not call again unless the user asks you to.`
      : `The user did not log in to ${link.server} in time, so nothing was done. Call again once the user is ready to.`,
  );
}

// MCP 2026-07-28 "Multi Round-Trip Requests": the state says which link the client was sent to. It is sealed, and bound to the user
// and the call.

/** Names the question in the client's response, and the link in the state. */
const KEY = 'connect';

function findDoorAnswer(relay: RelayedClient) {
  if (relay.era === 'session' || relay.answered === undefined) return undefined;
  const { inputResponses, state } = relay.answered;
  const { server, [KEY]: id } = state;
  return typeof id === 'string' ? { server, id, response: inputResponses[KEY] } : undefined;
}

// Messages for people and models. A link is for one user only.

function describeNeed(server: string, { why, scopes }: ConnectionNeeded, isShared: boolean) {
  if (scopes !== undefined && scopes.length > 0)
    return `${server} requires more permissions: ${scopes.join(', ')}.`;
  if (isShared)
    return why === undefined
      ? `${server} is not connected yet.`
      : `${server} has to be connected again: ${why}.`;
  return why === undefined
    ? `You need to log in to ${server} first.`
    : `You need to log in to ${server} again: ${why}.`;
}

const CALL_AGAIN = 'The requested login was for another server. Call again, without the answers.';

// §24.3: logging in without a call that continues: `<server>__connect`, and names that are known only afterwards.

export function createConnectUser(doors: Doors, toFailedResult: ToFailedResult): ConnectUser {
  async function connect(call: ConnectCall): Promise<RawResult | undefined> {
    const { upstream, caller, context } = call;
    const access = await upstream.logins?.getAccess(caller);
    if (access === undefined || access.kind === 'active') return undefined;
    try {
      const needed = toLoginError(access);
      if (!(needed instanceof ConnectionNeeded)) throw needed;
      await doors.pass(needed, call, context, true);
      return undefined;
    } catch (thrown) {
      return toResult(call, thrown);
    }
  }

  const toResult = ({ upstream, caller, method, context }: ConnectCall, thrown: unknown) =>
    toFailedResult(upstream.config.name, { method }, thrown, {
      era: context.relay.era,
      capabilities: caller.capabilities,
    });

  return {
    connect,
    async connectAndTell(call) {
      const refused = await connect(call);
      if (refused !== undefined) return refused;
      const { upstream, caller } = call;
      const { name } = upstream.config;
      try {
        const info = await upstream.logins?.describe(caller);
        const account = info?.account === undefined ? name : `${name} as ${info.account}`;
        return {
          content: [
            { type: 'text', text: `Connected to ${account}. Its tools can be called now.` },
          ],
        };
      } catch (cause) {
        return toResult(
          call,
          new CredentialError('the store of this service does not answer', { cause }),
        );
      }
    },
  };
}

// §24.4: each request to a server that users log in to themselves uses one connection from beginning to end.

/** Nothing is sent if the connection is missing or cannot be used. */
export function bindConnections(upstream: Upstream, logins: Logins): Upstream {
  /** Keyed by owner. */
  const ids = createBoundedMap<string, string>('connectedUsers');
  const listenings = new Set<{ readonly caller: UpstreamCaller; restart(): Promise<void> }>();

  /** Synchronous if the connection is cached, as it nearly always is, so that cached lists are also found without waiting. */
  function getAccess(caller: UpstreamCaller): LoginAccess | Promise<LoginAccess> {
    const access = logins.getAccess(caller);
    return access instanceof Promise
      ? access.then((later) => remember(caller, later))
      : remember(caller, access);
  }

  /** Cached data about the server is looked up by the connection's last known state. */
  function remember(caller: UpstreamCaller, access: LoginAccess): LoginAccess {
    const owner = logins.findOwner(caller);
    if (owner === undefined || access.kind === 'unavailable') return access;
    const name = nameConnectionOwner(owner);
    if (access.kind === 'active') ids.set(name, access.connectionId);
    else ids.delete(name);
    return access;
  }

  function peekConnectionId(caller: UpstreamCaller) {
    const owner = logins.findOwner(caller);
    return owner && ids.get(nameConnectionOwner(owner));
  }

  /** @throws CredentialError if the connection is missing, or cannot be used. */
  async function bind(caller: UpstreamCaller): Promise<UpstreamCaller> {
    // The gateway itself requests only what any caller may request. Its callers are limited by the list that it gets.
    if (caller === GATEWAY_CALLER || caller.connectionId !== undefined) return caller;
    const access = await getAccess(caller);
    if (access.kind !== 'active') throw toLoginError(access);
    return bindCaller(caller, access.connectionId);
  }

  function listen(
    caller: UpstreamCaller,
    listener: UpstreamListener,
    uris: readonly string[] | undefined,
  ): () => void {
    const listening = { caller, restart };
    let isOpen = true;
    let stop = () => {};

    async function restart() {
      stop();
      stop = () => {};
      const access = await getAccess(caller);
      if (!isOpen || access.kind !== 'active') return;
      stop();
      stop = upstream.listen(bindCaller(caller, access.connectionId), listener, uris);
    }

    listenings.add(listening);
    void restart();
    return () => {
      isOpen = false;
      listenings.delete(listening);
      stop();
    };
  }

  return wrapUpstream(upstream, {
    logins: {
      ...logins,
      getAccess,
      peekConnectionId,
      noteChange(owner) {
        ids.delete(nameConnectionOwner(owner));
        for (const { caller, restart } of listenings)
          if (isCallerOf(logins, caller, owner)) void restart();
      },
    } satisfies UpstreamLogins,
    request: async (caller, request) => upstream.request(await bind(caller), request),
    describe: async (caller) => upstream.describe(await bind(caller)),
    peekDescription(caller) {
      if (caller === GATEWAY_CALLER || caller.connectionId !== undefined)
        return upstream.peekDescription(caller);
      const connectionId = peekConnectionId(caller);
      return connectionId === undefined
        ? undefined
        : upstream.peekDescription(bindCaller(caller, connectionId));
    },
    listen,
    async endSession(caller) {
      const bound = await bind(caller).catch(() => undefined);
      if (bound !== undefined) await upstream.endSession(bound);
    },
  });
}
