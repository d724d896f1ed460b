import type { PublicEndpoint } from '../endpoint/endpoint.ts';
import type { GatewayRequest, PendingReply, Reply, RequestBody } from '../endpoint/message.ts';
import type { WorkEnd } from '../telemetry/audit/audit.ts';

/** Called when a request comes in; what it returns is called when its reply, or what it failed with, is known. */
export type WatchRequest = (
  request: GatewayRequest,
  body: RequestBody,
) => (end: WorkEnd<Reply>) => void;

/** The same endpoint. What a limit refuses is not seen. */
export function watchEndpoint(endpoint: PublicEndpoint, watch: WatchRequest): PublicEndpoint {
  async function judge(request: GatewayRequest, body: RequestBody): Promise<PendingReply> {
    const onEnd = watch(request, body);
    const rethrow = (thrown: unknown): never => {
      onEnd({ thrown });
      throw thrown;
    };

    async function run(judged: PendingReply): Promise<Reply> {
      const reply = await Promise.resolve().then(judged).catch(rethrow);
      onEnd({ result: reply });
      return reply;
    }

    const pending = await endpoint.judge(request, body).catch(rethrow);
    return () => run(pending);
  }

  return { ...endpoint, judge };
}

/** Whether the reply tells of a failure, though nothing was thrown. */
export const isFailure = ({ error, status }: Reply): boolean =>
  error !== undefined || status >= 400;

/** The OAuth client, among the facts for the log. */
export const readClient = ({ facts }: Pick<Reply, 'facts'>): string | undefined =>
  typeof facts?.client === 'string' ? facts.client : undefined;
