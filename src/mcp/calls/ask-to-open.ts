// MCP "URL mode elicitation": a client is asked to lead its user to a page of the gateway's.
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { SessionRelay } from '../catalog/catalog.ts';

export interface PageQuestion {
  readonly method: 'elicitation/create';
  readonly params: JsonObject;
}

export const createPageQuestion = (params: {
  readonly elicitationId: string;
  readonly url: string;
  readonly message: string;
}): PageQuestion => ({ method: 'elicitation/create', params: { mode: 'url', ...params } });

/** The client's response, whatever its user wants; undefined where the question would not reach the client. */
export async function askInSession(
  relay: SessionRelay,
  question: Parameters<SessionRelay['ask']>[0],
): Promise<JsonObject | undefined> {
  try {
    const answer = await relay.ask(question);
    return 'result' in answer ? answer.result : NO_ANSWER;
  } catch (thrown) {
    if (relay.signal.aborted || !(thrown instanceof GatewayError)) throw thrown;
    return thrown.key === 'client_cannot_be_asked' ? undefined : NO_ANSWER;
  }
}

/**
 * Resolves to the client's response.
 *
 * @throws GatewayError; MCP 2025-11-25 "URL Elicitation Required Errors" where a question would not reach the client.
 */
export async function askToOpen(relay: SessionRelay, question: PageQuestion): Promise<JsonObject> {
  const { params } = question;
  const jsonRpc = {
    code: URL_REQUIRED,
    message: String(params.message),
    data: { elicitations: [params] },
  };
  return (await askInSession(relay, question)) ?? fail('upstream_error', { jsonRpc });
}

export const URL_REQUIRED = -32042;

/** As somebody who does not want to decide. */
export const NO_ANSWER = { action: 'cancel' } as const;
