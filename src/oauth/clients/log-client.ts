// The log says of every refusal which client it is about.

import type { PendingReply, Reply, RequestBody } from '../../endpoint/message.ts';
import { GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';
import { truncateForLog } from '../../platform/log.ts';

/** Judges a request, and does the work that is left, with the client's id among the facts of both. */
export async function logClient(
  clientId: string | undefined,
  judge: () => Promise<PendingReply>,
): Promise<PendingReply> {
  if (clientId === undefined) return judge();
  const client = truncateForLog(clientId);
  const pending = await judge().catch(rethrowWith(client));
  return async function run(): Promise<Reply> {
    const reply = await Promise.resolve().then(pending).catch(rethrowWith(client));
    return { ...reply, facts: { client, ...reply.facts } };
  };
}

const rethrowWith = (client: string) => (thrown: unknown) => {
  const error = toGatewayError(thrown);
  const { failure } = error;
  throw new GatewayError(error.key, {
    ...failure,
    details: error.message,
    facts: { client, ...failure.facts },
  });
};

/** Of a query or a form that is not yet judged. */
export function findClientId(parameters: string): string | undefined {
  const [, value] = /(?:^|&)client_id=([^&]+)/.exec(parameters) ?? [];
  return value === undefined
    ? undefined
    : (new URLSearchParams(`_=${value}`).get('_') ?? undefined);
}

export function findClientIdInBody(body: RequestBody): string | undefined {
  if (body.type === 'form') return findClientId(body.text);
  const clientId = isObject(body.value) ? body.value.client_id : undefined;
  return typeof clientId === 'string' ? clientId : undefined;
}
