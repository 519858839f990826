// Loaded before a server's own code: whatever it listens on becomes a loopback port, a free one if PORT is 0, and is said
// on standard output; and the process ends with the one that started it, of which its standard input is a pipe.
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function loopback(...args) {
  const listening = args.findLast((arg) => typeof arg === 'function');
  return listen.call(this, { host: '127.0.0.1', port: Number(process.env.PORT ?? 0) }, () => {
    console.log(`ready ${this.address().port}`);
    listening?.();
  });
};
process.stdin.resume().on('end', () => process.exit(0));
