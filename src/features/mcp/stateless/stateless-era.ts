// The stateless era, 2026-07-28: every request brings its version and what its client can do; no
// session, no requests to the client.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject } from '../../../core/json.ts';
import { header } from '../../../core/message.ts';
import { createContext, createSignal } from '../calls/context.ts';
import { inputErrorResult } from '../calls/input-error.ts';
import {
  capabilitiesOf,
  type Method,
  type Methods,
  mayAsk,
  noSuchMethod,
  type Outcome,
} from '../calls/methods.ts';
import { replyTo } from '../calls/reply-to.ts';
import type { Calls } from '../calls/running-calls.ts';
import type { Catalog, ServiceInfo } from '../catalog/catalog.ts';
import type { MirroredParam } from '../catalog/define/mirrored.ts';
import type { Codec, McpCall } from '../era-handler.ts';
import type { Request } from '../protocol/json-rpc.ts';
import { SUPPORTED_VERSIONS } from '../protocol/revisions.ts';
import { type Line, openLine, takesEventStream } from '../streaming/response-stream.ts';
import { type Envelope, readEnvelope } from './envelope.ts';
import type { Listen } from './listen.ts';
import { checkMirrored, checkSubject } from './mirrored-headers.ts';
import type { RequestState } from './request-state.ts';
import { beginRound, type Round } from './round.ts';
import { serverInfoOf } from './server-info.ts';

export interface StatelessCodecDeps {
  readonly catalog: Catalog;
  readonly methods: Methods;
  readonly requestState: RequestState;
  readonly calls: Calls;
  /** Undefined without `MCP_STREAMS`. */
  readonly listen: Listen | undefined;
  readonly service: ServiceInfo;
}

const LISTEN = 'subscriptions/listen';

/** Like the lists: new with a deploy. */
const DISCOVERED = { ttlMs: 60_000, scope: 'public' } as const;

export function createStatelessCodec(deps: StatelessCodecDeps): Codec {
  const { catalog, requestState, calls, service, listen } = deps;
  const serverInfo = serverInfoOf(service);
  const listens = listen !== undefined && catalog.offers.subscriptions;
  const methods: Methods = new Map([['server/discover', discover()], ...deps.methods]);

  return {
    era: 'stateless',
    knows: (method) => methods.has(method) || (listens && method === LISTEN),
    async take(call, message) {
      if (message.kind === 'notification') return { status: 202 };
      if (message.kind === 'response') {
        fail('invalid_request', { details: 'There is no request of this service to answer.' });
      }
      const envelope = readEnvelope(call.request, message);
      const takesStream = takesEventStream(header(call.request, 'accept'));
      if (message.method === LISTEN && listens) {
        return takesStream ? listen(message, call.user) : fail('not_acceptable');
      }
      const method = methods.get(message.method) ?? noSuchMethod('unknown_method', message.method);
      checkSubject(call.request, method, message.params);
      checkMirrored(call.request, mirroredBy(message), message.params);
      const { line, reply } = openLine(takesStream);
      const { signal } = createSignal(call.request);
      run(call, message, { envelope, method, line, signal });
      return reply;
    },
  };

  function mirroredBy({ method, params }: Request): readonly MirroredParam[] {
    const name = method === 'tools/call' && isObject(params) ? params.name : undefined;
    return typeof name === 'string' ? catalog.mirroredParams(name) : [];
  }

  function run(call: McpCall, message: Request, way: Way): void {
    const { line, signal } = way;
    void replyTo(message.id, signal, begin(call, message, way)).then((reply) => line.finish(reply));
  }

  /** Does not await the work: that would keep the message until it ends (decisions 10). */
  async function begin(call: McpCall, message: Request, { envelope, method, line, signal }: Way) {
    const { user } = call;
    const round = await beginRound({ user, request: message }, envelope.client, requestState);
    const context = createContext({
      mayAsk: mayAsk(method),
      params: message.params,
      user,
      service,
      line,
      signal,
      ask: round.ask,
      isAsking: round.isAsking,
      client: () => envelope.client,
      logLevel: catalog.offers.logging ? envelope.logLevel : undefined,
    });
    return resultOf(round, calls.run(call, method, message.params, context));
  }

  async function resultOf(round: Round, work: Promise<Outcome>) {
    const ended = await settled(work);
    const asks = await round.inputRequired();
    return signed(asks ?? complete(ended()));
  }

  /** Every result says whose it is. */
  function signed(result: Readonly<Record<string, unknown>>) {
    return { ...result, _meta: serverInfo };
  }

  function discover(): Method {
    const result = {
      supportedVersions: SUPPORTED_VERSIONS,
      capabilities: capabilitiesOf(catalog, listen !== undefined),
      ...(catalog.instructions !== undefined && { instructions: catalog.instructions }),
    };
    return { run: async () => ({ result, cache: DISCOVERED }) };
  }
}

/** How one request reaches its tool, and the tool its client. */
interface Way {
  readonly envelope: Envelope;
  readonly method: Method;
  readonly line: Line;
  signal(): AbortSignal;
}

const complete = ({ result, cache }: Outcome) => ({
  resultType: 'complete',
  ...result,
  ...(cache && { ttlMs: cache.ttlMs, cacheScope: cache.scope }),
});

/** The outcome, or what was thrown, once somebody asks for it. */
const settled = (outcome: Promise<Outcome>): Promise<() => Outcome> =>
  outcome.then(
    (value) => () => value,
    (thrown: unknown) => () => ({ result: inputErrorResult(thrown) }),
  );
