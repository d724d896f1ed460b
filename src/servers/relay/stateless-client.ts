// §18.3: clients of the stateless era are asked by the result of their call, and call again with the answers.
import { randomUUID } from 'node:crypto';
import { GatewayError } from '../../errors/gateway-error.ts';
import { passAnswers } from '../../mcp/calls/guards.ts';
import type { Context, StatelessRelay } from '../../mcp/catalog/catalog.ts';
import { TASKS } from '../../mcp/protocol/revisions.ts';
import { CallRefusedError } from '../../mcp/upstream/failures.ts';
import {
  nameAsker,
  passLog,
  passProgress,
  type RelayedCall,
  refuseQuestion,
} from '../../mcp/upstream/server-request.ts';
import { UpstreamError, type UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { nameOwner } from '../../store/keys.ts';
import {
  type RequestClient,
  type RoundAnswers,
  redeemAnswers,
  refuseStopped,
  runRounds,
  sendToServer,
} from './rounds.ts';
import { type NextOutcome, toUpstreamError } from './suspended/outcome-records.ts';
import type {
  CallListener,
  ClientReply,
  NewCall,
  SuspendedCalls,
} from './suspended/suspended-calls.ts';

export const createStatelessRelay = (runtime: UpstreamRuntime, suspendedCalls: SuspendedCalls) =>
  async function relayToStatelessClient(
    call: RelayedCall,
    relay: StatelessRelay,
    context: Context,
  ): Promise<JsonObject> {
    const server = call.upstream.config.name;
    const user = context.user && nameOwner(context.user);
    const { capabilities } = call.caller;
    const waiting = readReply(server, user, relay);

    /** The server may ask while it works: then this request ends, and the call is suspended. */
    async function sendOpen(params: JsonObject) {
      const { outcome, ...place } = suspendedCalls.begin(
        { user, server, capabilities, params, send: createSend(call, params, context) },
        toListener(context),
      );
      return toResult(await outcome, place);
    }

    async function sendReply(reply: ClientReply): Promise<JsonObject> {
      const outcome = await suspendedCalls
        .resume(reply, toListener(context))
        .catch((cause: unknown) => {
          // Any failure but the server's is one of the store.
          throw cause instanceof UpstreamError
            ? cause
            : new GatewayError('internal_error', { cause });
        });
      if (outcome === undefined) throw callAgain(server);
      return toResult(outcome, reply);
    }

    /** A suspended call stays at its replica. */
    function toResult(
      outcome: NextOutcome,
      { id, replica }: Pick<ClientReply, 'id' | 'replica'>,
    ): JsonObject {
      switch (outcome.kind) {
        case 'result':
          return outcome.result;
        case 'failed':
          // Given up by the gateway, not by this client.
          throw outcome.failure === 'aborted' && !relay.signal.aborted
            ? callAgain(server)
            : toUpstreamError(outcome);
        case 'question': {
          const { key, question } = outcome;
          return relay.requireInput(
            { [key]: nameAsker(server, question) },
            { server, id, replica, key },
          );
        }
      }
    }

    if (waiting !== undefined) return sendReply(waiting);
    return runRounds({
      server,
      capabilities,
      questionGuards: relay.questionGuards,
      mayBeTask:
        call.request.method === 'tools/call' && capabilities.extensions?.[TASKS] !== undefined,
      params: call.request.params,
      first: await readAnswers(server, relay, runtime),
      // Servers of the stateless era do not ask while a call is in flight.
      send: (params) =>
        call.upstream.peekDescription(call.caller)?.era === 'stateless'
          ? sendToServer(call, params, toQuietClient(context))
          : sendOpen(params),
      async ask(questions, state) {
        const asked = Object.entries(questions);
        return relay.requireInput(
          Object.fromEntries(asked.map(([key, question]) => [key, nameAsker(server, question)])),
          {
            server,
            once: randomUUID(),
            // Keyed as the questions are: guards inspect an answer by its question.
            asked: Object.fromEntries(asked.map(([key, { method }]) => [key, method])),
            ...state,
          },
        );
      },
    });
  };

/** Servers of the stateless era do not ask while a call is in flight. */
function toQuietClient(context: Context): RequestClient {
  return {
    ...readWishes(context),
    ...toListener(context),
    // Servers of the stateless era send no requests: an older server must have taken its place just now.
    async answer() {
      throw refuseQuestion('A server of MCP 2026-07-28 asks by the result of the call.');
    },
  };
}

/** Keeps nothing of the request that began the call: it is over when the call is suspended. */
function createSend(call: RelayedCall, params: JsonObject, context: Context): NewCall['send'] {
  const wishes = readWishes(context);
  return (client) => sendToServer(call, params, { ...wishes, ...client });
}

const readWishes = ({ trace, relay: { logLevel, wantsProgress, questionGuards } }: Context) => ({
  trace,
  logLevel,
  wantsProgress,
  questionGuards,
});

const toListener = (context: Context): CallListener => ({
  signal: context.relay.signal,
  progress: (params) => context.relay.wantsProgress && passProgress(context, params),
  log: (params) => passLog(context, params),
});

/** The client's answer to a server that waits for it. */
function readReply(
  server: string,
  user: string | undefined,
  { answered }: StatelessRelay,
): ClientReply | undefined {
  if (answered === undefined) return undefined;
  const { server: asked, id, replica, key } = answered.state;
  if (typeof id !== 'string' || typeof replica !== 'string' || typeof key !== 'string')
    return undefined;
  if (asked !== server) throw callAgain(server);
  return { id, user, server, replica, key, answer: answered.inputResponses[key] };
}

/** The client's answers to a server that gets the request again; none where it was not asked before. */
async function readAnswers(
  server: string,
  { answered, questionGuards }: StatelessRelay,
  runtime: UpstreamRuntime,
): Promise<RoundAnswers | undefined> {
  if (answered === undefined) return undefined;
  const { inputResponses, state } = answered;
  const { once, asked, requestState } = state;
  if (state.server !== server || typeof once !== 'string' || !isObject(asked))
    throw callAgain(server);
  const methods = Object.fromEntries(
    Object.entries(asked).map(([key, method]) => [key, { method: String(method) }]),
  );
  // Before the answers are redeemed: refused ones were not passed on, and may be corrected and sent again.
  const passed = await passAnswers(methods, inputResponses, questionGuards).catch(refuseStopped);
  if (!(await redeemAnswers(runtime, once)))
    throw new CallRefusedError(
      `The answers to what ${server} asked were passed on before, and count once. The call may have been done: check, where it must not be done twice. Call again without the answers.`,
    );
  return {
    inputResponses: passed,
    ...(typeof requestState === 'string' && { requestState }),
  };
}

const callAgain = (server: string) =>
  new CallRefusedError(
    `The call at ${server} that asked this is over, and its answer is lost. Call again, without the answers.`,
  );
