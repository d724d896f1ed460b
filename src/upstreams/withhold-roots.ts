// §18.3: roots are folders on the machines of users. A server is told them only where the configuration file says so.

import { isObject, type JsonObject } from '../platform/json.ts';
import type { Log } from '../platform/log.ts';
import type { UpstreamConfig } from './config/upstream-config.ts';
import { CallRefusedError } from './relay/call-refused.ts';
import { refuseQuestion } from './relay/questions.ts';
import type { Upstream, UpstreamCaller, UpstreamQuestion, UpstreamRequest } from './upstream.ts';
import { wrapUpstream } from './wrap-upstream.ts';

/** The same server, for which no client has roots unless the file says `"roots": true`. */
export function withholdRoots<Config extends UpstreamConfig>(
  upstream: Upstream<Config>,
  log: Log,
): Upstream<Config> {
  const { config } = upstream;
  if (config.roots) return upstream;
  let isNoted = false;

  function noteQuestion(): void {
    if (isNoted) return;
    isNoted = true;
    log.warn(
      `The MCP server ${config.name} asks for roots, the folders that its callers work on, and is not told them. If it may know them, set "roots": true for it in the configuration file.`,
      { server: config.name },
    );
  }

  /** Servers should not ask for what no client declared. */
  const refuseRoots = (answer: OnRequest): OnRequest =>
    async function answerQuestion(question, signal) {
      if (!isAboutRoots(question)) return answer(question, signal);
      noteQuestion();
      throw refuseQuestion(NOT_TOLD, METHOD_NOT_FOUND);
    };

  return wrapUpstream(upstream, {
    async request(caller, request) {
      if (!caller.capabilities.roots) return upstream.request(caller, request);
      const { onRequest } = request;
      const result = await upstream.request(withoutRoots(caller), {
        ...request,
        ...(onRequest && { onRequest: refuseRoots(onRequest) }),
      });
      if (!asksForRoots(result)) return result;
      noteQuestion();
      throw new CallRefusedError(`${config.name} asked for roots. ${NOT_TOLD}`);
    },
    describe: (caller) => upstream.describe(withoutRoots(caller)),
    peekDescription: (caller) => upstream.peekDescription(withoutRoots(caller)),
    listen: (caller, listener, uris) => upstream.listen(withoutRoots(caller), listener, uris),
    endSession: (caller) => upstream.endSession(withoutRoots(caller)),
  });
}

type OnRequest = NonNullable<UpstreamRequest['onRequest']>;

/** JSON-RPC 2.0 §5.1. */
const METHOD_NOT_FOUND = -32601;

const NOT_TOLD =
  'The gateway does not tell this server the roots of clients: its configuration file says for which servers it does ("roots": true).';

/** The gateway itself, and who has none, stay the object that they are. */
const withoutRoots = (caller: UpstreamCaller): UpstreamCaller =>
  caller.capabilities.roots
    ? { ...caller, capabilities: { ...caller.capabilities, roots: false } }
    : caller;

const isAboutRoots = ({ method }: Partial<UpstreamQuestion>): boolean => method === 'roots/list';

/** A server of the stateless era asks by its result. */
function asksForRoots({ resultType, inputRequests }: JsonObject): boolean {
  if (resultType !== 'input_required' || !isObject(inputRequests)) return false;
  return Object.values(inputRequests).some((one) => isObject(one) && isAboutRoots(one));
}
