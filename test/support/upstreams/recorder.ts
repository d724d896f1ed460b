// A server in front of another that writes down all that reaches it.
import { type IncomingHttpHeaders, request } from 'node:http';
import { listenOnLoopback } from './listen.ts';

export interface RecordedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Recorder {
  readonly url: string;
  readonly received: readonly RecordedRequest[];
  close(): Promise<void>;
}

export async function startRecorder(target: string): Promise<Recorder> {
  const received: RecordedRequest[] = [];
  const { url, close } = await listenOnLoopback(async (req, res) => {
    let body = '';
    for await (const chunk of req) body += chunk;
    const { method = '', headers } = req;
    received.push({ method, headers, body });
    const { host: _host, ...passedOn } = headers;
    const onward = request(target, { method, headers: passedOn }, (answer) => {
      res.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => res.destroy());
    res.on('close', () => onward.destroy());
    onward.end(body);
  });
  return { url, received, close };
}
