"""Scores as an ONNX graph: nearest vectors, inner products, item-item weights, and sums of standardised scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.items import Attributes
from dpcml.retrieval.rerank import FAMILIAR
from dpcml.utils.arrays import Array, FloatArray
from dpcml.utils.errors import ParameterError
from dpcml.utils.packages import require

OPSET, IR_VERSION = 17, 8  # ONNX 1.12 and newer read them
SOLVER_STEPS = 25  # of conjugate gradients for the vectors of new users of iALS
LARGEST = 2**31 - 2**20  # bytes: a file of protobuf ends at 2 GiB
USERS, VECTORS, HISTORY, SCORES = "users", "vectors", "history", "scores"


class ScoreGraph:
    """Nodes that compute scores of shape (batch, items); each method adds some and returns the name of their result.

    Inputs are declared by use: ``users`` (rows of known users) or ``vectors`` (of new users), and ``history`` (ones for
    liked items, else zeros), of shapes (batch,), (batch, C, d) and (batch, items).
    """

    def __init__(self) -> None:
        self.onnx: Any = require("onnx", "onnx")
        self._nodes: list[Any] = []
        self._constants: dict[str, Array] = {}
        self.inputs: dict[str, tuple[str, list[str | int]]] = {}  # type and shape by name

    def constant(self, values: Array) -> str:
        """Add an array and return its name."""
        self._check_room(values.nbytes)
        name = f"constant_{len(self._constants)}"
        self._constants[name] = np.ascontiguousarray(values)
        return name

    def _check_room(self, more: int) -> None:
        """Raise an error if the file cannot hold some bytes more."""
        size = more + sum(values.nbytes for values in self._constants.values())
        if size > LARGEST:
            raise ParameterError(f"onnx: at least {size / 2**30:.1f} GiB of arrays, a file holds 2; export to npy")

    def input(self, name: str, kind: str, shape: list[str | int]) -> str:
        """Declare an input of the graph and return its name."""
        self.inputs[name] = kind, shape
        return name

    def node(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        name = f"{operation.lower()}_{len(self._nodes)}"
        self._nodes.append(self.onnx.helper.make_node(operation, list(inputs), [name], **attributes))
        return name

    def number(self, value: float) -> str:
        """Add a single number."""
        return self.constant(np.array(value, dtype=np.float32))

    def known_vectors(self, users: FloatArray) -> str:
        """Return the vectors of users by row; shape (batch, C, d), or (batch, d) for one each."""
        return self.node("Gather", self.constant(users), self.input(USERS, "INT64", ["batch"]), axis=0)

    def new_vectors(self, n_vectors: int, dim: int) -> str:
        """Return the vectors that are given; shape (batch, C, d)."""
        return self.input(VECTORS, "FLOAT", ["batch", n_vectors, dim])

    def nearest(self, vectors: str, items: FloatArray) -> str:
        """Return minus the squared distance of every item to the nearest of the vectors, as `nearest_scores` does."""
        cross = self.node("MatMul", vectors, self.constant(items.T))  # (batch, C, items)
        squares = self.node("ReduceSumSquare", vectors, axes=[2], keepdims=1)  # (batch, C, 1)
        closeness = self.node("Sub", self.node("Mul", cross, self.number(2.0)), squares)
        best = self.node("ReduceMax", closeness, axes=[1], keepdims=0)  # (batch, items)
        return self.node("Sub", best, self.constant(np.einsum("id,id->i", items, items)))

    def ridge_factors(self, items: FloatArray, gram: FloatArray, weight: float) -> str:
        """Return the vectors x that solve ``(gram + weight Y^T H Y) x = (weight + 1) Y^T h`` for the histories h.

        By conjugate gradients, unrolled: a system for each user has no operation in ONNX.
        """
        n_items = len(items)
        vectors, across, products = self.constant(items), self.constant(items.T), self.constant(gram)
        last, tiny = self.constant(np.array([1])), self.number(1e-30)
        history = self.history(n_items)

        def square(a: str, b: str) -> str:
            return self.node("ReduceSum", self.node("Mul", a, b), last, keepdims=1)

        residual = direction = self.affine(self.node("MatMul", history, vectors), weight + 1)
        found, norm = self.affine(residual, 0.0), square(residual, residual)
        for _ in range(SOLVER_STEPS):
            liked = self.node("Mul", self.node("MatMul", direction, across), history)
            applied = self.affine(self.node("MatMul", liked, vectors), weight)
            applied = self.node("Add", self.node("MatMul", direction, products), applied)
            rate = self.node("Div", norm, self.node("Max", square(direction, applied), tiny))
            found = self.node("Add", found, self.node("Mul", rate, direction))
            residual = self.node("Sub", residual, self.node("Mul", rate, applied))
            before, norm = norm, square(residual, residual)
            share = self.node("Div", norm, self.node("Max", before, tiny))
            direction = self.node("Add", residual, self.node("Mul", share, direction))
        return found

    def inner_products(self, users: str, items: FloatArray) -> str:
        """Return the inner products of users' vectors with all items'."""
        return self.node("MatMul", users, self.constant(items.T))

    def history(self, n_items: int) -> str:
        """Return the liked items, an input."""
        return self.input(HISTORY, "FLOAT", ["batch", n_items])

    def weighted_history(self, weights: FloatArray) -> str:
        """Return the sum of the liked items' weights for each item; ``weights`` has shape (liked, scored)."""
        return self.node("MatMul", self.history(len(weights)), self.constant(weights))

    def standardised(self, scores: str, n_items: int) -> str:
        """Return scores with mean 0 and variance 1 over items that are not in the history, as `blend_scores` does."""
        last, tiny = self.constant(np.array([1])), self.number(1e-12)
        unseen = self.node("Sub", self.number(1.0), self.history(n_items))
        count = self.node("ReduceSum", unseen, last, keepdims=1)
        mean = self.node("Div", self.node("ReduceSum", self.node("Mul", scores, unseen), last, keepdims=1), count)
        centred = self.node("Sub", scores, mean)
        squares = self.node("Mul", self.node("Mul", centred, centred), unseen)
        variance = self.node("Div", self.node("ReduceSum", squares, last, keepdims=1), count)
        level = self.node("Max", self.node("Mul", mean, mean), tiny)
        flat = self.node("LessOrEqual", variance, self.node("Mul", level, tiny))  # all items alike: adds nothing
        scaled = self.node("Div", centred, self.node("Sqrt", variance))
        return self.node("Where", flat, self.number(0.0), scaled)

    def minority(self, attributes: Attributes) -> str:
        """Return how much each item belongs to the smaller categories of the history, as `minority_scores` does."""
        matrix, last, tiny = attributes.matrix, self.constant(np.array([1])), self.number(1e-12)
        sizes = np.diff(matrix.indptr)
        codes = np.full((len(sizes), max(int(sizes.max(initial=0)), 1)), matrix.shape[1])  # of no category: the last
        codes[np.arange(codes.shape[1]) < sizes[:, None]] = matrix.indices
        self._check_room(4 * matrix.shape[0] * (matrix.shape[1] + 1))  # before they are spread out
        weights = np.pad(attributes.weights.astype(np.float32).toarray(), ((0, 0), (0, 1)))
        counts = self.weighted_history(weights)  # (batch, categories and none)
        shares = self.node("Div", counts, self.node("Max", self.node("ReduceSum", counts, last, keepdims=1), tiny))
        largest = self.node("Max", self.node("ReduceMax", shares, axes=[1], keepdims=1), tiny)
        own = self.node("ReduceMax", self.node("Gather", shares, self.constant(codes), axis=1), axes=[2], keepdims=0)
        known = self.node("Div", own, self.node("Add", own, self.number(FAMILIAR)))
        return self.node("Mul", known, self.node("Sub", self.number(1.0), self.node("Div", own, largest)))

    def affine(self, scores: str, factor: float, shift: float = 0.0) -> str:
        """Return scores times a factor plus a shift."""
        scaled = self.node("Mul", scores, self.number(factor))
        return self.node("Add", scaled, self.number(shift)) if shift else scaled

    def write(self, result: str, n_items: int, path: Path) -> None:
        """Check the graph that ends in ``result`` and write it to a file."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        self._nodes.append(helper.make_node("Identity", [result], [SCORES]))
        graph = helper.make_graph(
            self._nodes,
            "dpcml",
            [helper.make_tensor_value_info(name, getattr(types, kind), s) for name, (kind, s) in self.inputs.items()],
            [helper.make_tensor_value_info(SCORES, types.FLOAT, ["batch", n_items])],
            [self.onnx.numpy_helper.from_array(values, name) for name, values in self._constants.items()],
        )
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="dpcml")
        self.onnx.checker.check_model(model)
        self.onnx.save(model, str(path))
