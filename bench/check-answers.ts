// Whether a contestant answers rightly: checked call by call before and after the load, and learnt from
// it what wrk has to see during the load.
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import type { Call } from './calls.ts';
import type { ExpectedAnswer } from './wrk.ts';

export interface Answer {
  readonly status: number;
  /** Names and values in turn, as they were sent. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

const CHECKS = 20;

/** Those of one connection, not of the answer. */
const CONNECTION_HEADERS = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding']);

/**
 * Makes some calls with ids of both kinds.
 *
 * @throws Error that says what was wrong with an answer.
 */
export async function checkAnswers(call: Call): Promise<ExpectedAnswer> {
  for (let n = 0; n < CHECKS; n++) {
    const id = n % 2 === 0 ? n + 1000 : randomUUID();
    checkAnswer(call, await sendCall(call, id), id);
  }
  const id = randomUUID();
  const answer = await sendCall(call, id);
  checkAnswer(call, answer, id);
  return {
    ...splitAtId(answer, id),
    headerNames: answer.rawHeaders.filter(
      (name, at) => at % 2 === 0 && !CONNECTION_HEADERS.has(name.toLowerCase()),
    ),
  };
}

function checkAnswer(call: Call, { status, rawHeaders, body }: Answer, id: number | string): void {
  const found = `${status} ${rawHeaders.join(' ')}\n${body.slice(0, 2000)}`;
  if (status !== 200) throw new Error(`not a 200: ${found}`);
  const message = JSON.parse(EVENT.exec(body)?.[1] ?? body);
  const isRight = message.jsonrpc === '2.0' && message.id === id && call.isRight(message.result);
  if (!isRight) throw new Error(`not the answer to ${id}: ${found}`);
}

/** The message of a stream's last event. */
const EVENT = /^data: (.*)\n\n$/m;

export function sendCall(call: Call, id: number | string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(call.url, { method: 'POST', headers: call.headers }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.once('error', reject);
      response.once('end', () => {
        resolve({ status: response.statusCode ?? 0, rawHeaders: response.rawHeaders, body });
      });
    });
    sent.once('error', reject);
    sent.end(call.renderBody(id));
  });
}

/** An answer's headers and body, ready for those that repeat it with another id. */
export function renderAnswerFile(answer: Answer, id: number | string): string {
  const { rawHeaders } = answer;
  const headers: Record<string, string> = {};
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase();
    if (!CONNECTION_HEADERS.has(name)) headers[name] = rawHeaders[at + 1] ?? '';
  }
  return JSON.stringify({ headers, ...splitAtId(answer, id) });
}

function splitAtId({ body }: Answer, id: number | string) {
  const [beforeId = '', afterId = ''] = body.split(JSON.stringify(id));
  return { beforeId, afterId };
}
