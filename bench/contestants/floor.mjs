// The least that a gateway with tokens, limits and shared sessions does for a call: check an RS256 token
// (verify-token.mjs), ask Redis once (two sliding windows, the session, its extension), answer.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Redis } from 'ioredis';
import { createJsonListener, readAnswer } from './answer.mjs';
import { verifyToken } from './verify-token.mjs';

const { PORT, REDIS_URL, ANSWER_FILE } = process.env;
const WINDOW_MS = 60_000;
const MAX = 1_000_000_000;
const SESSION_TTL_SECONDS = 86_400;

const { headers, renderBody } = readAnswer(ANSWER_FILE);

const redis = new Redis(REDIS_URL);
redis.defineCommand('countAndTouch', {
  numberOfKeys: 3,
  lua: `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local counts = {}
for i = 1, 2 do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - ARGV[1])
  counts[i] = redis.call('ZCARD', KEYS[i])
  if counts[i] >= tonumber(ARGV[2]) then return { 0, counts[i], now, now } end
end
for i = 1, 2 do
  redis.call('ZADD', KEYS[i], now, now .. '-' .. ARGV[3])
  redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
local session = redis.call('HMGET', KEYS[3], 'userId', 'protocolVersion')
if session[1] == ARGV[4] then
  redis.call('HSET', KEYS[3], 'lastAccessedAt', now)
  redis.call('EXPIRE', KEYS[3], ARGV[5])
end
return { 1, counts[1] + 1, redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2], now, session[1] }`,
});

let serial = 0;

async function handle(req, res, { id, method }) {
  const user = verifyToken(req.headers.authorization);
  if (user === undefined) return res.writeHead(401).end();
  if (method === 'initialize') return openSession(res, user, id);
  const session = req.headers['mcp-session-id'];
  const [admitted, count, oldest, now, owner] = await redis.countAndTouch(
    `window:${req.socket.remoteAddress}`,
    'window:global',
    `session:${session}`,
    WINDOW_MS,
    MAX,
    (serial++).toString(36),
    user,
    SESSION_TTL_SECONDS,
  );
  if (admitted !== 1) return res.writeHead(429).end();
  if (owner !== user) return res.writeHead(404).end();
  const body = renderBody(id);
  headers['content-length'] = Buffer.byteLength(body);
  headers['x-ratelimit-limit'] = MAX;
  headers['x-ratelimit-remaining'] = MAX - count;
  headers['x-ratelimit-reset'] = Math.ceil((Number(oldest) + WINDOW_MS) / 1000);
  headers['x-session-expires-at'] = new Date(now + SESSION_TTL_SECONDS * 1000).toISOString();
  res.writeHead(200, headers);
  res.end(body);
}

async function openSession(res, userId, id) {
  const session = randomUUID();
  await redis.hset(`session:${session}`, { userId, protocolVersion: '2025-11-25' });
  res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': session });
  res.end(JSON.stringify({ jsonrpc: '2.0', id, result: {} }));
}

createServer(createJsonListener(handle)).listen(Number(PORT), '127.0.0.1');

// An orderly end, so that a profile gets written.
process.once('SIGTERM', () => process.exit());
