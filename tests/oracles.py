"""Slow, obvious implementations used as truth by tests and as the reference way by benchmarks.

Each is written from the definition, with loops where the definition has a sum. Nothing here is fast on purpose.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog
from scipy.special import betaln, digamma, gammaln, logsumexp, polygamma

# ----------------------------------------------------------------------------------------------- transport


def extend(cost, mass, forbidden, p, q, xi=0.0, corner=math.inf):
    """The (n+1, m+1) cost and masses of the appendix; forbidden cells and the corner cost infinity."""
    n, m = cost.shape
    extended = np.full((n + 1, m + 1), float(xi))
    extended[:n, :m] = np.where(forbidden, math.inf, cost)
    extended[n, m] = corner
    return extended, np.append(p, max(q.sum() - mass, 0)), np.append(q, max(p.sum() - mass, 0))


def sinkhorn_log(cost, mass, entropy, forbidden=None, p=None, q=None, tol=1e-12, max_iter=200_000):
    """Float64 log-domain Sinkhorn on the extended problem, run until the marginals hold."""
    n, m = cost.shape
    forbidden = np.zeros((n, m), bool) if forbidden is None else forbidden
    p = np.full(n, 1 / n) if p is None else p
    q = np.full(m, 1 / m) if q is None else q
    extended, p_hat, q_hat = extend(cost, mass, forbidden, p, q)
    with np.errstate(divide="ignore"):
        log_kernel, log_p, log_q = -extended / entropy, np.log(p_hat), np.log(q_hat)
    f, g = np.zeros(n + 1), np.zeros(m + 1)
    for iteration in range(max_iter):
        with np.errstate(invalid="ignore"):
            f = np.where(p_hat > 0, log_p - logsumexp(log_kernel + g, axis=1), -math.inf)
            g = np.where(q_hat > 0, log_q - logsumexp(log_kernel + f[:, None], axis=0), -math.inf)
        if iteration % 20 == 19:
            plan = np.exp(log_kernel + f[:, None] + g)
            if np.abs(plan.sum(1) - p_hat).max() < tol * mass:
                break
    return np.exp(log_kernel + f[:, None] + g)[:n, :m]


def released_sinkhorn(cost, mass, entropy, forbidden, stop="potentials", tol=1e-6, max_iter=1000):
    """The released L2RM solver: log domain, ξ = 100 max C, corner 2ξ + max C, potentials started at 0.

    stop="potentials" ends when the row potential changes by less than 1e-3 in norm (as released);
    stop="marginals" runs the same iteration on to a relative marginal error of tol.
    """
    n, m = cost.shape
    cost = np.maximum(cost, 1e-10)
    extended, p_hat, q_hat = extend(
        cost, mass, np.zeros((n, m), bool), np.full(n, 1 / n), np.full(m, 1 / m), 100 * cost.max(), 201 * cost.max()
    )
    mask = np.ones((n + 1, m + 1), bool)
    mask[:n, :m] = ~forbidden
    u, v = np.zeros(n + 1), np.zeros(m + 1)

    def kernel():
        return np.where(mask, (-extended + u[:, None] + v[None, :]) / entropy, -1e6)

    def lse(x, axis):
        top = x.max(axis, keepdims=True)
        return (top + np.log(np.exp(x - top).sum(axis, keepdims=True) + 1e-10)).squeeze(axis)

    for iteration in range(1, max_iter + 1):
        before = u
        u = u + entropy * (np.log(p_hat) - lse(kernel(), 1))
        v = v + entropy * (np.log(q_hat) - lse(kernel(), 0))
        if stop == "potentials" and np.linalg.norm(u - before) < 1e-3:
            break
        # The error costs a third exponential of the matrix: look now and then, as anybody would.
        if stop == "marginals" and iteration % 10 == 0:
            plan = np.exp(kernel())
            if np.abs(plan.sum(1) / p_hat - 1).max() < tol:
                break
    return np.exp(kernel())[:n, :m], iteration


def exact_partial_transport(cost, mass, forbidden, p, q):
    """Partial transport without entropy, as a linear program over the allowed cells."""
    n, m = cost.shape
    cells = [(i, j) for i in range(n) for j in range(m) if not forbidden[i, j]]
    upper = np.zeros((n + m, len(cells)))
    for k, (i, j) in enumerate(cells):
        upper[i, k] = upper[n + j, k] = 1
    solution = linprog(
        [cost[i, j] for i, j in cells],
        A_ub=upper,
        b_ub=np.concatenate([p, q]),
        A_eq=np.ones((1, len(cells))),
        b_eq=[mass],
        method="highs",
    )
    assert solution.status == 0, solution.message
    return solution.fun


# ------------------------------------------------------------------------------------------------- mixture


def beta_log_density(x, a, b):
    return (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b)


def beta_em(x, weights, parameters, iterations=500, target=None, tol=1e-9):
    """EM for a Beta mixture on all samples, with maximum-likelihood M-steps.

    Gives weights, parameters and the trace of the mean log likelihood; stops at `target` if given.
    """
    weights, parameters = np.array(weights, float), np.array(parameters, float)
    log_x, log_y = np.log(x), np.log1p(-x)
    trace = []
    for _ in range(iterations):
        joint = np.stack([np.log(w) + beta_log_density(x, a, b) for w, (a, b) in zip(weights, parameters, strict=True)])
        total = logsumexp(joint, axis=0)
        trace.append(total.mean())
        if (target is not None and trace[-1] >= target) or (len(trace) > 1 and trace[-1] - trace[-2] < tol):
            break
        claimed = np.exp(joint - total)
        weights = claimed.mean(1)
        for k in range(2):
            share = claimed[k] / claimed[k].sum()
            parameters[k] = beta_mle((share * log_x).sum(), (share * log_y).sum(), parameters[k])
    return weights, parameters, np.array(trace)


def beta_mle(mean_log_x, mean_log_y, start):
    """The (a, b) with E log x and E log(1-x) as given, by Newton's method."""
    a, b = start
    for _ in range(50):
        gradient = np.array([digamma(a) - digamma(a + b) - mean_log_x, digamma(b) - digamma(a + b) - mean_log_y])
        shared = polygamma(1, a + b)
        hessian = np.array([[polygamma(1, a) - shared, -shared], [-shared, polygamma(1, b) - shared]])
        step = np.linalg.solve(hessian, gradient)
        new = np.maximum([a - step[0], b - step[1]], [a / 4, b / 4])
        if np.abs(new - [a, b]).max() < 1e-10:
            break
        a, b = new
    return a, b


# -------------------------------------------------------------------------------------------------- losses


def triplet(scores, margin, negatives="hardest", k=None):
    """Per-pair triplet by a double loop; the margin follows the anchor."""
    n = len(scores)
    margins = np.full(n, margin) if np.isscalar(margin) else margin
    losses = []
    for i in range(n):
        captions = [max(0, margins[i] + scores[i, j] - scores[i, i]) for j in range(n) if j != i]
        images = [max(0, margins[i] + scores[j, i] - scores[i, i]) for j in range(n) if j != i]
        total = 0
        for costs in (captions, images):
            if negatives == "hardest":
                total += max(costs, default=0)
            elif negatives == "mean":
                total += sum(costs) / n
            else:
                hardest = sorted(costs, reverse=True)[:k]
                total += sum(hardest) / max(len(hardest), 1)
        losses.append(total)
    return np.array(losses)


def softmax(x):
    x = np.exp(x - np.max(x))
    return x / x.sum()


def info_nce(scores, tau):
    n = len(scores)
    return np.array(
        [-math.log(softmax(scores[i] / tau)[i]) - math.log(softmax(scores[:, i] / tau)[i]) for i in range(n)]
    )


def reverse_cross_entropy(scores, tau, floor):
    n = len(scores)
    losses = []
    for i in range(n):
        label = np.clip(np.eye(n)[i], floor, 1 - floor)
        losses.append(sum(-(softmax(line / tau) * np.log(label)).sum() for line in (scores[i], scores[:, i])))
    return np.array(losses)


def complementary(scores, tau, kind, q, negatives):
    penalty = {
        "log": lambda p: -math.log(1 - p),
        "tan": math.tan,
        "abs": lambda p: p,
        "exp": lambda p: math.exp(-(1 - p)),
        "gce": lambda p: (1 - (1 - p) ** q) / q,
    }[kind]
    n = len(scores)
    losses = []
    for i in range(n):
        row, column = softmax(scores[i] / tau), softmax(scores[:, i] / tau)
        losses.append(
            sum(penalty(row[j]) for j in range(n) if j != i and negatives[i, j])
            + sum(penalty(column[j]) for j in range(n) if j != i and negatives[i, j])
        )
    return np.array(losses)


def active_complementary(scores, labels, tau, weight):
    losses = []
    for i, y in enumerate(labels):
        loss = 0.0
        for line in (scores[i], scores[:, i]):
            p = softmax(line / tau)
            others = sum(math.tan(p[j]) for j in range(len(p)) if j != i)
            loss += -y * math.log(p[i]) + weight * others / (others + math.tan(p[i])) ** (1 - y)
        losses.append(loss)
    return np.array(losses)


def structures(vectors, trust):
    """Cosine of every item to every other of its side, weighted by the trust in the other."""
    found = np.zeros((len(vectors), len(vectors)))
    for i, a in enumerate(vectors):
        for j, b in enumerate(vectors):
            if i != j:
                found[i, j] = trust[j] * (a @ b) / math.sqrt((a @ a) * (b @ b))
    return found


def divergence(scores, plan, tau, kind, floor):
    """Per-row divergence between the normalised plan and the softmax of the scores."""
    values = []
    for line, target in zip(scores, plan, strict=True):
        p = softmax(line / tau)
        t = np.maximum(target, floor)
        t = t / t.sum()
        kl = lambda a, b: float((a * np.log(a / b)).sum())  # noqa: E731
        middle = (p + t) / 2
        values.append(
            {
                "sym_kl": 0.5 * (kl(t, p) + kl(p, t)),
                "kl": kl(t, p),
                "cross_entropy": -float((t * np.log(p)).sum()),
                "js": 0.5 * (kl(t, middle) + kl(p, middle)),
            }[kind]
        )
    return np.array(values)


def dirichlet_loss(evidence, target, kl_weight):
    values = []
    for e, y in zip(evidence, target, strict=True):
        alpha = e + 1
        total = alpha.sum()
        error = ((y - alpha / total) ** 2).sum()
        spread = (alpha * (total - alpha) / (total**2 * (total + 1))).sum()
        wrong = y + (1 - y) * alpha
        s = wrong.sum()
        kl = gammaln(s) - gammaln(wrong).sum() - gammaln(len(e)) + ((wrong - 1) * (digamma(wrong) - digamma(s))).sum()
        values.append(error + spread + kl_weight * kl)
    return np.array(values)


# --------------------------------------------------------------------------------------------------- ranks


def ranks(scores, owner):
    """Rank of every query by its definition: wrong candidates that score at least as high as the best right one."""
    n, m = scores.shape
    i2t = []
    for i in range(n):
        mine = [j for j in range(m) if owner[j] == i]
        if mine:
            best = max(scores[i, j] for j in mine)
            i2t.append(sum(scores[i, j] >= best for j in range(m) if owner[j] != i))
    t2i = [sum(scores[i, j] >= scores[owner[j], j] for i in range(n) if i != owner[j]) for j in range(m)]
    return np.array(i2t), np.array(t2i)


def argsort_metrics(scores, captions):
    """The loop everybody copies: one argsort per query (ties by index)."""
    n = len(scores)
    i2t = np.zeros(n)
    for i in range(n):
        order = np.argsort(scores[i])[::-1]
        i2t[i] = min(np.where(order == j)[0][0] for j in range(captions * i, captions * i + captions))
    t2i = np.zeros(n * captions)
    for i in range(n):
        for j in range(captions * i, captions * i + captions):
            order = np.argsort(scores[:, j])[::-1]
            t2i[j] = np.where(order == i)[0][0]
    recalls = [100 * (r < k).mean() for r in (i2t, t2i) for k in (1, 5, 10)]
    return [*recalls, sum(recalls)]
