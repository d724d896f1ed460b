// The least that a gateway does which passes calls on: check an RS256 token (verify-token.mjs), send the bytes on
// by undici, and the answer back as it comes. No limits, no sessions, no look at what it passes on.
import { createServer } from 'node:http';
import { Pool } from 'undici';
import { verifyToken } from './verify-token.mjs';

const { PORT, UPSTREAM_URL } = process.env;
const upstream = new URL(UPSTREAM_URL);
const pool = new Pool(upstream.origin, { keepAliveTimeout: 60_000 });

/** Of requests and answers. */
const PASSED_ON = ['content-type', 'accept', 'mcp-session-id', 'mcp-protocol-version'];

function select(headers) {
  const selected = {};
  for (const name of PASSED_ON) {
    if (headers[name] !== undefined) selected[name] = headers[name];
  }
  return selected;
}

function passOn(req, res, body) {
  pool.dispatch(
    { path: upstream.pathname, method: 'POST', headers: select(req.headers), body },
    {
      onRequestStart() {},
      onResponseStart(_controller, status, headers) {
        const answer = select(headers);
        const length = headers['content-length'];
        if (length !== undefined) answer['content-length'] = length;
        res.writeHead(status, answer);
      },
      onResponseData: (_controller, chunk) => void res.write(chunk),
      onResponseEnd: () => res.end(),
      onResponseError: () => (res.headersSent ? res.destroy() : res.writeHead(502).end()),
    },
  );
}

createServer((req, res) => {
  if (req.method !== 'POST') return res.end();
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('end', () => {
    if (verifyToken(req.headers.authorization) === undefined) return res.writeHead(401).end();
    passOn(req, res, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  });
}).listen(Number(PORT), '127.0.0.1');

// An orderly end, so that a profile gets written.
process.once('SIGTERM', () => process.exit());
