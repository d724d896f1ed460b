// The least that Node.js does for a call: parse the JSON, answer. No token, no limits, no session.
import { createServer } from 'node:http';
import { createJsonListener, readAnswer } from './answer.mjs';

const { headers, renderBody } = readAnswer(process.env.ANSWER_FILE);

// Whoever opens a session gets the same answer with this header; nothing is kept.
headers['mcp-session-id'] = 'none';

const listener = createJsonListener((_req, res, { id }) => {
  const body = renderBody(id);
  headers['content-length'] = Buffer.byteLength(body);
  res.writeHead(200, headers);
  res.end(body);
});

createServer(listener).listen(Number(process.env.PORT), '127.0.0.1');

// An orderly end, so that a profile gets written.
process.once('SIGTERM', () => process.exit());
