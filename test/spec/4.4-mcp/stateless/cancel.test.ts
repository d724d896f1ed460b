// MCP 2026-07-28 "Cancellation": who hangs up cancels; no message does.
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { beforeEach, describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../../src/index.ts';
import { eventsIn, sendToolCall, statelessRequest } from '../../../support/clients/stateless.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

interface Run {
  readonly began: Promise<AbortSignal>;
  begin(signal: AbortSignal): void;
  readonly told: Promise<void>;
  tell(): void;
}

/** The one of `waits` that is on. */
let run: Run;

function newRun(): Run {
  let begin = (_signal: AbortSignal) => {};
  let tell = () => {};
  const began = new Promise<AbortSignal>((resolve) => {
    begin = resolve;
  });
  const told = new Promise<void>((resolve) => {
    tell = resolve;
  });
  return { began, begin, told, tell };
}

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'waits',
      description: 'Waits to be told, or cancelled.',
      inputSchema: { type: 'object' },
      async run(_args, { progress, signal }) {
        progress(1);
        run.begin(signal);
        await Promise.race([run.told, once(signal, 'abort')]);
        return { content: [] };
      },
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });
beforeEach(() => {
  run = newRun();
});

interface Sent {
  readonly sent: ClientRequest;
  readonly response: Promise<IncomingMessage>;
}

async function post(meta: Readonly<Record<string, unknown>>): Promise<Sent> {
  const accept = 'application/json, text/event-stream';
  const sent = await sendToolCall(gateway, 'waits', { meta, headers: { accept } });
  sent.on('error', () => {});
  return { sent, response: new Promise((resolve) => sent.once('response', resolve)) };
}

describe('a call whose client hangs up', () => {
  test.each([
    { what: 'before its JSON has come', meta: {} },
    { what: 'while its stream is open', meta: { progressToken: 1 } },
  ])('§15 $what: the tool is told by its signal', async ({ meta }) => {
    const { sent, response } = await post(meta);
    const signal = await run.began;
    if ('progressToken' in meta) await response;
    expect(signal.aborted).toBe(false);
    const aborted = once(signal, 'abort');
    sent.destroy();
    await aborted;
    expect(signal.aborted).toBe(true);
  });

  test('§15 notifications/cancelled is of the session era: the call goes on', async () => {
    const { response } = await post({ progressToken: 1 });
    const signal = await run.began;
    const { message, headers } = statelessRequest('notifications/cancelled', { requestId: 1 });
    const { id: _, ...notification } = message;
    expect((await gateway.rpc(notification, { headers })).status).toBe(202);
    run.tell();
    let text = '';
    for await (const piece of (await response).setEncoding('utf8')) text += piece;
    expect(eventsIn(text).at(-1)).toMatchObject({ id: 1, result: { resultType: 'complete' } });
    expect(signal.aborted).toBe(false);
  });
});
