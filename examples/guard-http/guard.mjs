// A guard over HTTP in 30 lines: e-mail addresses do not reach models, and nobody calls a tool with a card number.
import { createServer } from 'node:http';

const EMAIL = /[\w.+-]+@[\w-]+\.[\w.-]+/g;
const CARD = /\b(?:\d[ -]?){13,19}\b/;

const redact = (value) => JSON.parse(JSON.stringify(value).replace(EMAIL, '[e-mail]'));

/** `payload` is what goes through: params of a request, or a result. */
function judge({ phase, payload }) {
  const text = JSON.stringify(payload);
  if (phase === 'request' && CARD.test(text)) {
    return { decision: 'refuse', message: 'It contains what looks like a card number.' };
  }
  return phase === 'response' && text.search(EMAIL) !== -1
    ? { decision: 'change', value: redact(payload) }
    : { decision: 'pass' };
}

const server = createServer(async (req, res) => {
  let body = '';
  for await (const piece of req.setEncoding('utf8')) body += piece;
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify(judge(JSON.parse(body))));
});

server.listen(Number(process.env.PORT ?? 8181), '127.0.0.1', () => {
  process.stdout.write(`The guard listens on http://127.0.0.1:${server.address().port}\n`);
});
