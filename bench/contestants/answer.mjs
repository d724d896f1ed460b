// The answer that all contestants without MCP give: Postern's own bytes, which the benchmark wrote to a
// file before the measurement. Only the id is the caller's.
import { readFileSync } from 'node:fs';

/**
 * @returns the headers as Postern sent them, and a function that makes the body for an id.
 */
export function readAnswer(file) {
  const { headers, beforeId, afterId } = JSON.parse(readFileSync(file, 'utf8'));
  return { headers, renderBody: (id) => `${beforeId}${JSON.stringify(id)}${afterId}` };
}

/** Calls `handle` with each POST and its parsed body; others only ask whether the server is up. */
export function createJsonListener(handle) {
  return (req, res) => {
    if (req.method !== 'POST') return res.end();
    const chunks = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => {
      const [first] = chunks;
      const bytes = chunks.length === 1 ? first : Buffer.concat(chunks);
      handle(req, res, JSON.parse(bytes.toString()));
    });
  };
}
