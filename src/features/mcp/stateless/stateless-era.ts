// The stateless era, 2026-07-28: every request brings its version and what its client can do; no
// session, no requests to the client.
import { fail, type GatewayError } from '../../../core/errors/gateway-error.ts';
import { isObject, type JsonObject } from '../../../core/json.ts';
import type { Call, EraHandler } from '../calls/call.ts';
import { toFailureResult } from '../calls/call-tool.ts';
import {
  failUnknownMethod,
  listCapabilities,
  type Method,
  type MethodResult,
} from '../calls/methods.ts';
import type { RunMethod } from '../calls/run-method.ts';
import { describeCatalog, type View } from '../calls/view.ts';
import type { Caller, Catalog, ServiceInfo } from '../catalog/catalog.ts';
import type { JsonRpcRequest } from '../protocol/json-rpc.ts';
import { ACCEPTED, toOutcome } from '../protocol/response.ts';
import { SUPPORTED_VERSIONS } from '../protocol/revisions.ts';
import type { NotificationStreams } from '../streaming/notification-streams.ts';
import type { ResourceUpdates } from '../streaming/resource-updates.ts';
import { type Envelope, readEnvelope } from './envelope.ts';
import { type Round, startRound } from './multi-round-trip.ts';
import { checkNameHeader, checkParamHeaders } from './request-headers.ts';
import type { RequestState } from './request-state.ts';
import { createOpenSubscription } from './subscriptions.ts';

export interface StatelessEraDeps {
  readonly runMethod: RunMethod;
  readonly requestState: RequestState;
  readonly notificationStreams: NotificationStreams;
  readonly resourceUpdates: ResourceUpdates;
  /** `MCP_STREAMS`: whether there are subscriptions. */
  readonly hasStreams: boolean;
  readonly service: ServiceInfo;
}

const LISTEN = 'subscriptions/listen';

/** Like the lists: new with a deploy. */
const DISCOVER_CACHE = { ttlMs: 60_000, scope: 'public' } as const;

export function createStatelessEra(deps: StatelessEraDeps): EraHandler {
  const { runMethod, requestState, hasStreams } = deps;
  const { name, version } = deps.service;
  const serverInfo = { 'io.modelcontextprotocol/serverInfo': { name, version } };
  const openSubscription = createOpenSubscription({ ...deps, serverInfo });

  const hasSubscriptions = ({ catalog: { offers } }: View): boolean =>
    hasStreams && (offers.subscriptions || offers.listChanges === true);

  const findMethod = ({ catalog, methods }: View, method: string): Method | undefined =>
    method === 'server/discover' ? createDiscover(catalog) : methods.stateless.get(method);

  return {
    supports: (view, method) =>
      findMethod(view, method) !== undefined || (method === LISTEN && hasSubscriptions(view)),
    accessSession: () => undefined,
    async handle(call, message) {
      if (message.kind === 'notification') return ACCEPTED;
      if (message.kind === 'response') {
        fail('invalid_request', {
          details: 'This service has sent no request that this could answer.',
        });
      }
      const envelope = readEnvelope(call.request, message, call.view.catalog.offers);
      if (message.method === LISTEN && hasSubscriptions(call.view)) {
        return call.stream.isAccepted
          ? openSubscription(message, call.view.catalog, toCaller(call, envelope))
          : fail('not_acceptable');
      }
      const method =
        findMethod(call.view, message.method) ??
        failUnknownMethod('unknown_method', message.method);
      checkNameHeader(call.request, method, message.params);
      const mirrored = listMirroredParams(call, message, envelope);
      // Local catalogues know them at once: their calls wait for nothing.
      const mirroredParams = mirrored instanceof Promise ? await mirrored : mirrored;
      checkParamHeaders(call.request, mirroredParams, message.params);
      const work = runCall(call, message, method, envelope);
      return call.stream.respond(toOutcome(work, call.signal, toCompleteFailure));
    },
  };

  function toCompleteFailure(error: GatewayError): JsonObject | undefined {
    const result = toFailureResult(error);
    return result && withServerInfo(toCompleteResult({ result }));
  }

  function listMirroredParams(
    call: Call,
    { method, params }: JsonRpcRequest,
    envelope: Envelope,
  ): ReturnType<Catalog['mirroredParams']> {
    const tool = method === 'tools/call' && isObject(params) ? params.name : undefined;
    return typeof tool === 'string'
      ? call.view.catalog.mirroredParams(tool, toCaller(call, envelope))
      : [];
  }

  /** Does not await the work: that would keep the request until it ends. */
  async function runCall(
    call: Call,
    request: JsonRpcRequest,
    method: Method,
    envelope: Envelope,
  ): Promise<JsonObject> {
    const round = await startRound(call.user, request, envelope, requestState);
    return endRound(round, runMethod(call, round, method, request.params));
  }

  async function endRound(round: Round, work: Promise<MethodResult>): Promise<JsonObject> {
    const getResult = await settle(work);
    const inputRequired = await round.createInputRequired();
    return withServerInfo(inputRequired ?? toCompleteResult(getResult()));
  }

  /** Every result says whose it is. */
  function withServerInfo(result: JsonObject): JsonObject {
    const { _meta: meta } = result;
    return { ...result, _meta: isObject(meta) ? { ...meta, ...serverInfo } : serverInfo };
  }

  function createDiscover(catalog: Catalog): Method {
    return {
      async run(_params, context) {
        const description = await describeCatalog(catalog, context);
        const { instructions } = description;
        const result = {
          supportedVersions: SUPPORTED_VERSIONS,
          capabilities: listCapabilities(description, hasStreams),
          ...(instructions !== undefined && { instructions }),
        };
        return { result, cache: catalog.describe === undefined ? DISCOVER_CACHE : NOT_SHARED };
      },
    };
  }
}

/** What depends on the caller is private. */
const NOT_SHARED = { ttlMs: 10_000, scope: 'private' } as const;

const toCaller = ({ user }: Call, { client }: Envelope): Caller => ({
  user,
  session: undefined,
  client,
});

const toCompleteResult = ({ result, cache }: MethodResult): JsonObject => ({
  resultType: 'complete',
  ...result,
  ...(cache && { ttlMs: cache.ttlMs, cacheScope: cache.scope }),
});

/** Once the work has ended: what gives its result, or throws what it threw. */
const settle = (work: Promise<MethodResult>): Promise<() => MethodResult> =>
  work.then(
    (value) => () => value,
    (thrown: unknown) => () => {
      throw thrown;
    },
  );
