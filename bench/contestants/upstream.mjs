// The least that an MCP server behind the gateway can be.
import { createServer } from 'node:http';
import { createJsonListener } from './answer.mjs';
import { answer, isStateless } from './server-answers.mjs';

const listener = createJsonListener((_req, res, message) => {
  const answered = answer(message);
  if (answered === undefined) return res.writeHead(202).end();
  const { isKnown, isStream, events } = answered;
  const body = isStream ? `event: message\ndata: ${answered.body}\n\n` : answered.body;
  res.writeHead(!isKnown && isStateless ? 404 : 200, {
    'content-type': isStream ? 'text/event-stream' : 'application/json',
    // A stream says nothing of its length.
    ...(!isStream && { 'content-length': Buffer.byteLength(body) }),
    ...(message.method === 'initialize' && { 'mcp-session-id': 'bare' }),
  });
  if (events === 0) res.end(body);
  else sendEvents(res, message.params, events, () => res.end(body));
});

/** One a millisecond, each by a write of its own. */
function sendEvents(res, { _meta: meta, arguments: { text } }, count, onEnd) {
  let sent = 0;
  const timer = setInterval(() => {
    sent += 1;
    const params = { progressToken: meta.progressToken, progress: sent, message: text };
    const event = { jsonrpc: '2.0', method: 'notifications/progress', params };
    res.write(`event: message\ndata: ${JSON.stringify(event)}\n\n`);
    if (sent < count) return;
    clearInterval(timer);
    onEnd();
  }, 1);
}

createServer({ keepAliveTimeout: 120_000 }, (req, res) =>
  req.method === 'POST' || req.url === '/health' ? listener(req, res) : res.writeHead(405).end(),
).listen(Number(process.env.PORT), '127.0.0.1');

process.once('SIGTERM', () => process.exit());
